"""Reports that change nothing: of runs that have reported before, or whose claims were taken away.

A repeated report that says what is stored is accepted again; one that says something else is a conflict. The report of
a run that ended otherwise is late: it leaves one event, however often it is sent.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Row, Select, bindparam, case, select, tuple_, update

from aaiclick.orchestration.models import Done, Failure, Receipt, Report
from aaiclick.orchestration.rules.states import LATE_REPORT, RunOutcome
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.dialects.table_moves import Key
from aaiclick.orchestration.store.object_tables.references import in_batches, settle_tables
from aaiclick.orchestration.store.resources.grants import free_dead
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, jobs, runs, tasks
from aaiclick.orchestration.store.transitions import task_event

TOLD = frozenset({RunOutcome.COMPLETED, RunOutcome.FAILED, RunOutcome.CRASHED, RunOutcome.SKIPPED})
"""Outcomes that workers reported; in all other cases the claim was taken away or given back."""


@dataclass(slots=True, frozen=True)
class Refused(Failure):
    """A failure that is stored in place of `report`, which the database refused or the graph cannot take."""

    report: Report | None = None


async def answer_stale(session: Session, worker_id: int, reports: Sequence[Report], receipt: Receipt) -> None:
    """Add to the receipt the answers to those of these reports that did not count just now.

    Rows of `runs` are locked after all others, in the order of their keys, and only those of late runs.
    """
    left = _left(reports, receipt.accepted)
    ended = await _read_ended(session, worker_id, left)
    told = [(report, row) for report in left if (row := ended.get(_key(report))) and row.outcome in TOLD]
    made = await _read_made(session, [row for report, row in told if _is_kept(row) and isinstance(report, Done)])
    for report, row in told:
        (receipt.accepted if _is_same(report, row, made) else receipt.conflicts).add(_key(report))
    late = {_key(report): (report, ended[_key(report)]) for report in left if _is_news(ended.get(_key(report)))}
    if late:
        await _note_late(session, worker_id, late)


async def answer_lost(session: Session, worker_id: int, done: Done) -> Receipt:
    """Answer a run that made tasks but lost its claim: its tasks are not stored, and what it held is freed."""
    receipt = Receipt()
    await settle_tables(session, [done], ())
    await free_dead(session, worker_id, [(done.task_id, done.epoch)])
    await answer_stale(session, worker_id, [done], receipt)
    return receipt


def _key(report: Report) -> Key:
    return report.task_id, report.epoch


def _left(reports: Sequence[Report], accepted: set[Key]) -> list[Report]:
    """Return the reports that did not count, and all reports of a run that has several: they may differ."""
    often = Counter(map(_key, reports))
    return [report for report in reports if _key(report) not in accepted or often[_key(report)] > 1]


# ---------------------------------------------------------------- what is stored


async def _read_ended(session: Session, worker_id: int, reports: Sequence[Report]) -> dict[Key, Row[Any]]:
    """Return the history rows of those of these runs that were this worker's."""
    keys = {_key(report) for report in reports}
    values = {
        "ids": session.dialect.pack(sorted({task for task, _ in keys})),
        "epochs": session.dialect.pack(sorted({epoch for _, epoch in keys})),
        "worker": worker_id,
    }
    rows = await session.rows(session.built(_ended), values)
    return {(row.task_id, row.epoch): row for row in rows if (row.task_id, row.epoch) in keys}


def _ended(dialect: Dialect) -> Select[Any]:
    """Select ended runs with their tasks and jobs. The result of a task is selected with its last run only."""
    last = tasks.c.epoch == runs.c.epoch
    facts = (runs.c.outcome, runs.c.error, runs.c.traceback, runs.c.report_digest, runs.c.late)
    of_task = (tasks.c.job_id, tasks.c.status, last.label("is_last"), case((last, tasks.c.result)).label("result"))
    return (
        select(runs.c.task_id, runs.c.epoch, *facts, *of_task, jobs.c.id.label("kept_job"))
        .select_from(
            runs.outerjoin(tasks, tasks.c.id == runs.c.task_id).outerjoin(jobs, jobs.c.id == tasks.c.job_id),
        )
        .where(
            dialect.in_ids(runs.c.task_id),
            dialect.in_ids(runs.c.epoch, "epochs"),
            runs.c.worker_id == bindparam("worker"),
        )
    )


async def _read_made(session: Session, rows: Sequence[Row[Any]]) -> dict[Key, set[int]]:
    """Return the ids of the tasks that each of these runs made."""
    made: dict[Key, set[int]] = {(row.task_id, row.epoch): set() for row in rows}
    if made:
        facts = select(tasks.c.parent_task_id, tasks.c.parent_epoch, tasks.c.id)
        which = session.any_of(tasks.c.parent_task_id, sorted({task for task, _ in made}))
        for row in await session.rows(facts.where(which)):
            made.setdefault((row.parent_task_id, row.parent_epoch), set()).add(row.id)
    return made


# ---------------------------------------------------------------- the same or not


def _is_kept(row: Row[Any]) -> bool:
    """Return whether the run's result is still stored: the task was not cleared, and its job is not gone."""
    return bool(row.is_last) and row.kept_job is not None


def _is_same(report: Report, row: Row[Any], made: Mapping[Key, set[int]]) -> bool:
    """Return whether a report says what the first report of its run said, as far as that is known."""
    if row.report_digest is not None:
        return bool(row.report_digest == digest_of(report))
    if row.outcome != _outcome(report):
        return False
    if isinstance(report, Failure):
        return (report.error, report.traceback) == (row.error, row.traceback)
    children = set() if report.children is None else {task.id for task in report.children.tasks}
    return not _is_kept(row) or (report.result_json == row.result and children == made[_key(report)])


def _outcome(report: Report) -> str:
    if isinstance(report, Done):
        return RunOutcome.COMPLETED
    if report.skipped:
        return RunOutcome.SKIPPED
    return RunOutcome.CRASHED if report.crashed else RunOutcome.FAILED


def _original(report: Report) -> Report:
    """Return the report as the worker sent it."""
    return report.report if isinstance(report, Refused) and report.report is not None else report


def digest_of(report: Report) -> str:
    """Return the digest by which a report that could not be stored is recognized when it is repeated."""
    said = _original(report)
    what = (said.result_json, said.children) if isinstance(said, Done) else (said.error, said.traceback)
    return hashlib.sha256(repr((str(_outcome(said)), *what)).encode("utf-8", "backslashreplace")).hexdigest()


# ---------------------------------------------------------------- late


class _Late(NamedTuple):
    """What `task_event` reads to make the event of a late report."""

    id: int
    job_id: int
    epoch: int
    worker_id: int


def _is_news(row: Row[Any] | None) -> bool:
    """Return whether a late report is to be noted: the run ended otherwise, and no late report was noted before.

    Nothing is written about jobs that are gone.
    """
    return row is not None and row.outcome not in TOLD and not row.late and row.kept_job is not None


async def _note_late(session: Session, worker_id: int, late: Mapping[Key, tuple[Report, Row[Any]]]) -> None:
    marked = await _mark(session, sorted(late))
    if not marked:
        return
    now = await session.now()
    noted: list[dict[str, Any]] = []
    for run in marked:
        report, row = late[run]
        detail = f"{_outcome(_original(report))}, but {row.outcome} before"
        noted.append(task_event(_Late(run[0], row.job_id, run[1], worker_id), LATE_REPORT, row.status, now, detail))
    await session.insert(events, noted)


async def _mark(session: Session, keys: Sequence[Key]) -> list[Key]:
    """Mark these runs as late; return those that were not marked. A transaction that marks the same ones waits here."""
    marked: list[Key] = []
    run = tuple_(runs.c.task_id, runs.c.epoch)
    for batch in in_batches(keys):
        theirs = session.any_of(runs.c.task_id, sorted({task for task, _ in batch}))  # so that MariaDB uses an index
        unmarked = select(runs.c.task_id, runs.c.epoch).where(theirs, run.in_(batch), ~runs.c.late)
        in_order = unmarked.order_by(runs.c.task_id, runs.c.epoch).with_for_update(key_share=True)
        fresh = [(row.task_id, row.epoch) for row in await session.rows(in_order)]
        if fresh:
            await session.run(update(runs).where(theirs, run.in_(fresh)).values(late=True))
        marked += fresh
    return marked
