"""What the database says about the runs that a worker lists in its heartbeat."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from aaiclick.orchestration.models import Held, Stop, TaskStatus
from aaiclick.orchestration.store.claims.reports import lock_claims
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, runs, table_run_refs, tasks
from aaiclick.orchestration.store.transitions import move_each


async def claimed_by(session: Session, worker_id: int) -> dict[tuple[int, int], int]:
    """Return the worker's live claims as (task, epoch), each with the number of the call that made it."""
    rows = await session.rows(select(claims).where(claims.c.worker_id == worker_id))
    return {(row.task_id, row.epoch): row.claim_call for row in rows}


async def runs_of(session: Session, worker_id: int, wanted: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of these runs, (task, epoch), that are or were the worker's."""
    ids = sorted({task for task, _ in wanted})
    found: set[tuple[int, int]] = set()
    for table in (claims, runs, table_run_refs):
        mine = select(table.c.task_id, table.c.epoch).where(
            session.any_of(table.c.task_id, ids), table.c.worker_id == worker_id
        )
        found |= {(row.task_id, row.epoch) for row in await session.rows(mine)}
    return found.intersection(wanted)


async def job_of_claim(session: Session, worker_id: int, task_id: int, epoch: int) -> int | None:
    """Return the job of a task that the worker has a live claim for, of this epoch; None if it has none."""
    held = (claims.c.worker_id == worker_id, claims.c.task_id == task_id, claims.c.epoch == epoch)
    found: int | None = await session.scalar(
        select(tasks.c.job_id).join(claims, claims.c.task_id == tasks.c.id).where(*held)
    )
    return found


async def unknown_holders(
    session: Session, worker_id: int, known_call: int, held: Sequence[Held]
) -> list[tuple[int, int]]:
    """Return runs that hold tables since their claim, and that the worker does not list: it never got the claim.

    The worker knows the answers of its claim calls up to `known_call`. Giving back an unknown claim frees its tables
    too; these are left where the claim was taken away before that.
    """
    ref = table_run_refs.c
    called = ref.claim_call.between(1, known_call)
    mine = select(ref.task_id, ref.epoch).where(ref.worker_id == worker_id, called, ~ref.freed).distinct()
    found = {(row.task_id, row.epoch) for row in await session.rows(mine)}
    return sorted(found - {(run.task_id, run.epoch) for run in held})


async def lost_runs(session: Session, lost: Sequence[Held]) -> dict[tuple[int, int], Stop]:
    """Return why each of these runs is no longer its worker's: cancelled, or lost."""
    if not lost:
        return {}
    which = session.any_of(tasks.c.id, sorted({run.task_id for run in lost}))
    rows = await session.rows(select(tasks.c.id, tasks.c.status).where(which))
    cancelled = {row.id for row in rows if row.status == TaskStatus.CANCELLED}
    return {(run.task_id, run.epoch): Stop.CANCELLED if run.task_id in cancelled else Stop.LOST for run in lost}


async def start_runs(session: Session, worker_id: int, started: Sequence[Held]) -> None:
    """Move these tasks from CLAIMED to RUNNING. Short runs never get there: they end before a heartbeat lists them."""
    said = {run.task_id: run for run in started}
    rows = await lock_claims(session, worker_id, {task: run.epoch for task, run in said.items()})
    fresh = [row for row in rows if row.status == TaskStatus.CLAIMED]
    if fresh:
        values = [
            (row, {"started_at": row.started_at or row.claimed_at, "log_path": said[row.id].log_path}) for row in fresh
        ]
        await move_each(session, ("start",), values, await session.now())
