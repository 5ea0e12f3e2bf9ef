"""Reports of runs: completed, failed or given back. A report counts only while its fence holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Row, select

from aaiclick.config import settings
from aaiclick.orchestration.models import Done, Failure, Receipt, Report
from aaiclick.orchestration.rules.retries import GiveUp, Retry, RetryPolicy, after_crash, after_failure
from aaiclick.orchestration.rules.states import LIVE_TASK, RunOutcome, TaskStatus
from aaiclick.orchestration.store.claim_ends import complete_claims, end_claims
from aaiclick.orchestration.store.claims.expectations import note_unmet
from aaiclick.orchestration.store.claims.stale_reports import Refused, answer_stale, digest_of
from aaiclick.orchestration.store.dialects.contract import EndedTask
from aaiclick.orchestration.store.moves.affinity import lanes_after
from aaiclick.orchestration.store.moves.queue import make_ready
from aaiclick.orchestration.store.moves.ripples import settle
from aaiclick.orchestration.store.object_tables.cache_entries import Made, bound, remember
from aaiclick.orchestration.store.object_tables.references import free_pins, free_runs, settle_tables
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import delayed, tasks
from aaiclick.orchestration.store.transitions import (
    ended_task,
    lock_tasks,
    move_each,
    run_row,
)

AReport = TypeVar("AReport", Done, Failure)


async def take_reports(
    session: Session, worker_id: int, reports: Sequence[Report], draw: Callable[[], float]
) -> Receipt:
    """Write the outcomes of these runs, with all that follows from them, in this one transaction.

    `draw` gives random numbers from 0 to 1, for the jitter of retry delays.
    """
    done = _newest([report for report in reports if isinstance(report, Done)])
    failures = _newest([report for report in reports if isinstance(report, Failure)])
    ended: list[EndedTask] = []
    errors: dict[int, str] = {}
    receipt = Receipt()
    if done:
        ended += await complete_claims(session, worker_id, done)
        epochs = {item.task_id: item.epoch for item in done}
        receipt.accepted |= {(task.id, epochs[task.id]) for task in ended}
        if any(item.remember for item in done):
            await _remember(session, done, ended)
    if failures:
        ended += await _fail(session, worker_id, failures, draw, receipt, errors)
    holding = [report for report in reports if report.holds or (report.task_id, report.epoch) not in receipt.accepted]
    if holding:
        await settle_tables(session, holding, receipt.accepted)
    receipt.rippling = await settle(session, ended, errors)
    if any(report.unmet for report in reports):
        await note_unmet(session, worker_id, reports, receipt.accepted)
    if len(receipt.accepted) < len(reports):
        await answer_stale(session, worker_id, reports, receipt)
    return receipt


async def _remember(session: Session, done: Sequence[Done], ended: Sequence[EndedTask]) -> None:
    which = session.any_of(tasks.c.id, sorted(task.id for task in ended))
    rows = await session.rows(select(tasks.c.id, tasks.c.job_id, tasks.c.entrypoint).where(which))
    known = {row.id: row for row in rows}
    made = [
        Made(row.job_id, row.id, item.epoch, item.result_json, bound(item.remember, row.entrypoint))
        for item in done
        if item.remember is not None and (row := known.get(item.task_id)) is not None
    ]
    await remember(session, made)


def _newest(reports: Sequence[AReport]) -> Sequence[AReport]:
    """Return one report per task: of its newest run, since no other can be live; of several of one run, the first."""
    newest = {report.task_id: report for report in reports}
    if len(newest) == len(reports):
        return reports
    found: dict[int, AReport] = {}
    for report in reports:
        if report.task_id not in found or found[report.task_id].epoch < report.epoch:
            found[report.task_id] = report
    return list(found.values())


async def lock_claims(session: Session, worker_id: int, epochs: dict[int, int]) -> list[Row[Any]]:
    """Lock these tasks; return those whose fence holds: this epoch, this worker, still live."""
    return [
        row
        for row in await lock_tasks(session, sorted(epochs))
        if row.epoch == epochs[row.id] and row.worker_id == worker_id and row.status in LIVE_TASK
    ]


async def _fail(
    session: Session,
    worker_id: int,
    failures: Sequence[Failure],
    draw: Callable[[], float],
    receipt: Receipt,
    errors: dict[int, str],
) -> list[EndedTask]:
    """Fail these runs, and retry, give up or skip their tasks; return the tasks that are given up or skipped.

    The clean-up needs no transaction of its own, since the worker is alive.
    """
    said = {failure.task_id: failure for failure in failures}
    rows = await lock_claims(session, worker_id, {task: failure.epoch for task, failure in said.items()})
    if not rows:
        return []
    now = await session.now()
    again: list[tuple[Row[Any], dict[str, Any]]] = []
    given_up: list[tuple[Row[Any], dict[str, Any]]] = []
    left_out = [(row, _left_out(row, said[row.id], now)) for row in rows if said[row.id].skipped]
    lanes = await lanes_after(session, [row for row in rows if not said[row.id].skipped], failed=True)
    receipt.accepted |= {(row.id, said[row.id].epoch) for row in rows}
    for row in rows:
        failure = said[row.id]
        if failure.skipped:
            continue
        lane = {"lane": lanes.get(row.id, row.lane)}
        match _verdict(row, failure, draw()):
            case Retry(delay_s):
                again.append((row, _another_attempt(row, failure, now, delay_s) | lane))
                receipt.due_s = delay_s if receipt.due_s is None else min(receipt.due_s, delay_s)
            case GiveUp():
                given_up.append((row, _no_more(row, failure, now) | lane))
                if row.critical:
                    errors.setdefault(row.job_id, failure.error)
    await move_each(session, ("fail", "retry"), again, now)
    await move_each(session, ("fail", "give_up"), given_up, now)
    await move_each(session, ("leave_out",), left_out, now)
    await free_pins(session, [row.id for row, _ in left_out])
    await end_claims(session, [_failed_run(row, said[row.id], now) for row in rows])
    await _queue_again(session, again)
    ended = [ended_task(row, TaskStatus.FAILED) for row, _ in given_up]
    return ended + [ended_task(row, TaskStatus.SKIPPED) for row, _ in left_out]


def _verdict(row: Row[Any], failure: Failure, draw: float) -> Retry | GiveUp:
    if failure.permanent:
        return GiveUp("it would fail again")
    if failure.crashed:
        return after_crash(RetryPolicy.from_json(row.retry_policy), row.crash_count, settings().crashes_max, draw)
    return after_failure(RetryPolicy.from_json(row.retry_policy), row.attempt, failure.error_types, draw)


def _another_attempt(row: Row[Any], failure: Failure, now: datetime, delay_s: float) -> dict[str, Any]:
    return {
        "epoch": row.epoch + 1,
        **_counted(row, failure),
        "worker_id": None,
        "started_at": None,
        "error": failure.error,
        "log_path": failure.log_path,
        "run_after": now + timedelta(seconds=delay_s) if delay_s > 0 else None,
    }


def _counted(row: Row[Any], failure: Failure) -> dict[str, int]:
    """Return the counter that grows: crashes count apart, and a task that kills its process is given up after a few."""
    return {"crash_count": row.crash_count + 1} if failure.crashed else {"attempt": row.attempt + 1}


def _no_more(row: Row[Any], failure: Failure, now: datetime) -> dict[str, Any]:
    return {
        **_counted(row, failure),
        "error": failure.error,
        "log_path": failure.log_path,
        "started_at": row.started_at or row.claimed_at,
        "completed_at": now,
    }


def _left_out(row: Row[Any], failure: Failure, now: datetime) -> dict[str, Any]:
    return {
        "error": None,
        "log_path": failure.log_path,
        "started_at": row.started_at or row.claimed_at,
        "completed_at": now,
    }


def _failed_run(row: Row[Any], failure: Failure, now: datetime) -> dict[str, Any]:
    outcome = RunOutcome.CRASHED if failure.crashed else RunOutcome.FAILED
    outcome = RunOutcome.SKIPPED if failure.skipped else outcome
    facts = run_row(row, outcome, now, failure.error, failure.traceback)
    digest = digest_of(failure) if isinstance(failure, Refused) else None
    return {**facts, "log_path": failure.log_path, "report_digest": digest}


async def _queue_again(session: Session, again: Sequence[tuple[Row[Any], dict[str, Any]]]) -> None:
    waits = [{"run_after": values["run_after"], "task_id": row.id} for row, values in again if values["run_after"]]
    await session.insert(delayed, waits)
    await make_ready(session, [row.id for row, values in again if values["run_after"] is None])


async def release_claims(session: Session, worker_id: int, epochs: dict[int, int]) -> set[int]:
    """Give these tasks back as if they had not been claimed, for others to take at once; return those whose fence held.

    The caller knows that no body of theirs goes on.
    """
    rows = await lock_claims(session, worker_id, epochs)
    await free_runs(session, list(epochs.items()))  # also of claims that were taken away meanwhile
    if not rows:
        return set()
    now = await session.now()
    values = [(row, {"epoch": row.epoch + 1, "worker_id": None, "started_at": None}) for row in rows]
    await move_each(session, ("release",), values, now)
    await end_claims(session, [run_row(row, RunOutcome.RELEASED, now) for row in rows])
    await make_ready(session, [row.id for row in rows])
    return {row.id for row in rows}
