"""The ends of claims: no other module deletes rows of `claims`.

Every function here that ends claims calls `free_held`, so that what a run held with its claim is freed in the
transaction that ends the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from aaiclick.orchestration.rules.states import RunOutcome
from aaiclick.orchestration.store.dialects.contract import EndedClaim, EndedTask
from aaiclick.orchestration.store.object_tables.ended_claims import keep_held
from aaiclick.orchestration.store.resources.grants import free_ended, free_grants
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, runs

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Done


async def complete_claims(session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
    """Complete the runs whose fence holds; return the tasks that moved to COMPLETED.

    This is the hot path: the dialect deletes the claims along with the statements that move the tasks.
    """
    ended = await session.dialect.complete_claims(session, worker_id, done)
    epochs = {item.task_id: item.epoch for item in done}
    await free_held(session, [EndedClaim(worker_id, task.id, epochs[task.id], RunOutcome.COMPLETED) for task in ended])
    await free_grants(session, [(task.id, epochs[task.id]) for task in ended if task.lane])
    return ended


async def end_claims(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Write the history of runs that ended without completing, and delete their claims.

    `rows` are rows of `runs`, as `transitions.run_row` makes them. The caller has locked the tasks.
    """
    if not rows:
        return
    ended = [EndedClaim(row["worker_id"], row["task_id"], row["epoch"], RunOutcome(row["outcome"])) for row in rows]
    await free_held(session, ended)
    await session.insert(runs, rows)
    await _delete(session, ended)


class LiveClaim(NamedTuple):
    """A live claim: read from `claims`, or derived from the row of its task, which says what should be there."""

    worker_id: int
    task_id: int
    epoch: int


async def mend_claims(
    session: Session, task_ids: Sequence[int], due: set[LiveClaim]
) -> tuple[set[LiveClaim], set[LiveClaim]]:
    """Make the claims of these tasks, which the caller has locked, equal to `due`; return (removed, added)."""
    chosen = select(*(claims.c[name] for name in LiveClaim._fields)).where(session.any_of(claims.c.task_id, task_ids))
    found = {LiveClaim._make(row) for row in await session.rows(chosen)}
    ended = [EndedClaim(*claim, RunOutcome.REPAIRED) for claim in sorted(found - due)]
    await free_held(session, ended)
    await _delete(session, ended)
    await session.insert(claims, [claim._asdict() for claim in sorted(due - found)])
    return found - due, due - found


async def free_held(session: Session, ended: Sequence[EndedClaim]) -> None:
    """Free what runs held with these claims, as far as the reason of each end allows.

    The body of a run whose claim was taken away may go on: the tables that it uses become references of the run
    itself, and it keeps its resources. The rows of `claims` still exist at this point, except those of completed runs.
    """
    await keep_held(session, ended)
    await free_ended(session, ended)


async def _delete(session: Session, ended: Iterable[EndedClaim]) -> None:
    by_worker: dict[int, list[int]] = {}
    for claim in ended:
        by_worker.setdefault(claim.worker_id, []).append(claim.task_id)
    for worker_id, ids in by_worker.items():
        await session.dialect.delete_claims(session, worker_id, sorted(ids))
