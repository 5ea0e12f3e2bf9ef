"""Claims that end without a report of their run: what the run held is written down as rows of `table_run_refs`.

While a run has its claim, it holds the tables that its task is pinned on and its own first table. No row of
`table_run_refs` says so; only the claim does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Column, Select, bindparam, select

from aaiclick.orchestration.rules.states import RunOutcome
from aaiclick.orchestration.rules.values.run_tables import run_table
from aaiclick.orchestration.store.dialects.contract import EndedClaim
from aaiclick.orchestration.store.insert_missing import copy_missing, insert_missing
from aaiclick.orchestration.store.object_tables.references import in_batches
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, table_context_refs, table_pin_refs, table_run_refs

TAKEN_AWAY = (RunOutcome.CANCELLED, RunOutcome.CLEARED)
"""Outcomes of runs whose bodies may go on until their worker learns that the claim is gone."""

GIVEN_BACK = (RunOutcome.RELEASED, RunOutcome.LOST)
"""Outcomes of runs whose body has ended, or is not waited for."""


async def keep_held(session: Session, claims_ended: Sequence[EndedClaim]) -> None:
    """Write into `table_run_refs` what the runs of these claims held.

    References of runs in `TAKEN_AWAY` are live: the body may still use the tables. References of runs in `GIVEN_BACK`
    are marked `freed`: they ask the leader to check whether the table is still needed. Claims with another outcome are
    ignored: what a run that reports held is settled with its report. Call this before the rows of `claims` are deleted.
    """
    ended = {claim.task_id: claim for claim in claims_ended if claim.outcome in TAKEN_AWAY + GIVEN_BACK}
    taken = {task: claim for task, claim in ended.items() if claim.outcome in TAKEN_AWAY}
    given, first = await _given(session, sorted(taken)), set(await _first(session, ended))
    if not (given or first):
        return
    first -= await _referred(session, sorted({task for task, _ in first}), ended)
    calls = await _calls(session, taken)
    refs = {
        task: {
            "task_id": task,
            "epoch": claim.epoch,
            "worker_id": claim.worker_id,
            "freed": task not in taken,
            "claim_call": calls.get(task, 0),
        }
        for task, claim in ended.items()
    }
    await insert_missing(
        session, table_run_refs, [{**refs[task], "table_name": table} for task, table in sorted(first)]
    )
    await copy_missing(session, table_run_refs, _what_is_pinned, [refs[task] for task in given])


async def _given(session: Session, task_ids: Sequence[int]) -> list[int]:
    """Return those of these tasks that have at least one live pin."""
    if not task_ids:
        return []
    pin = table_pin_refs.c
    theirs = select(pin.task_id).where(session.any_of(pin.task_id, task_ids), ~pin.freed).distinct()
    return [row.task_id for row in await session.rows(theirs)]


def _what_is_pinned() -> Select[Any]:
    """Select, for one run, the references to all tables that its task is pinned on.

    There may be thousands; INSERT … SELECT copies them within the database.
    """
    pin, ref = table_pin_refs.c, table_run_refs.c
    said = [_said(column).label(column.name) for column in (ref.epoch, ref.worker_id, ref.freed, ref.claim_call)]
    return select(pin.task_id, pin.table_name, *said).where(pin.task_id == _said(ref.task_id), ~pin.freed)


def _said(column: Column[Any]) -> BindParameter[Any]:
    return bindparam(column.name, type_=column.type)


async def _first(session: Session, ended: Mapping[int, EndedClaim]) -> list[tuple[int, str]]:
    """Return (task, first table) for each of these runs whose first table is registered."""
    names = {run_table(task, claim.epoch, 1): task for task, claim in ended.items()}
    known = table_context_refs.c.table_name
    found: list[tuple[int, str]] = []
    for batch in in_batches(sorted(names)):
        rows = await session.rows(select(known).where(known.in_(batch)))
        found += [(names[row.table_name], row.table_name) for row in rows]
    return found


async def _referred(session: Session, task_ids: Sequence[int], ended: Mapping[int, EndedClaim]) -> set[tuple[int, str]]:
    """Return (task, table) for each reference that these runs have in `table_run_refs` already."""
    if not task_ids:
        return set()
    ref = table_run_refs.c
    rows = await session.rows(
        select(ref.task_id, ref.epoch, ref.table_name).where(session.any_of(ref.task_id, task_ids))
    )
    return {(row.task_id, row.table_name) for row in rows if row.epoch == ended[row.task_id].epoch}


async def _calls(session: Session, ended: Mapping[int, EndedClaim]) -> dict[int, int]:
    """Return the number of the claim call of each task.

    A worker that never received the answer of a call runs none of its tasks, so there is no body to wait for.
    """
    called: dict[int, int] = {}
    by_worker: dict[int, list[int]] = {}
    for task, claim in ended.items():
        by_worker.setdefault(claim.worker_id, []).append(task)
    for worker, ids in sorted(by_worker.items()):
        mine = (claims.c.worker_id == worker, session.any_of(claims.c.task_id, sorted(ids)))
        rows = await session.rows(select(claims.c.task_id, claims.c.claim_call).where(*mine))
        called |= {row.task_id: row.claim_call for row in rows}
    return called
