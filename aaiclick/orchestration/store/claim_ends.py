"""The one place where claims end, for whatever reason: nobody else deletes from `claims`.

Every end passes `free_held`, so that what is held with a claim is freed in the transaction that ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import select

from aaiclick.orchestration.rules.states import RunOutcome
from aaiclick.orchestration.store.dialects.contract import EndedClaim, EndedTask
from aaiclick.orchestration.store.object_tables.ended_claims import keep_held
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, runs

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Done


async def complete_claims(session: Session, worker_id: int, done: Sequence[Done]) -> list[EndedTask]:
    """Complete the runs that pass the fence; return what moved.

    This is the hot path: the dialect deletes the claims with the statements that move their tasks.
    """
    ended = await session.dialect.complete_claims(session, worker_id, done)
    epochs = {item.task_id: item.epoch for item in done}
    await free_held(session, [EndedClaim(worker_id, task.id, epochs[task.id], RunOutcome.COMPLETED) for task in ended])
    return ended


async def end_claims(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Write the history of these runs, which ended otherwise, and delete their claims. Their tasks are locked."""
    if not rows:
        return
    ended = [EndedClaim(row["worker_id"], row["task_id"], row["epoch"], RunOutcome(row["outcome"])) for row in rows]
    await free_held(session, ended)
    await session.insert(runs, rows)
    await _delete(session, ended)


class LiveClaim(NamedTuple):
    """A row of `claims` as its task says that it should be."""

    worker_id: int
    task_id: int
    epoch: int


async def mend_claims(
    session: Session, task_ids: Sequence[int], due: set[LiveClaim]
) -> tuple[set[LiveClaim], set[LiveClaim]]:
    """Let these (locked) tasks have the claims that are due and no others; return those removed, and those added."""
    chosen = select(*(claims.c[name] for name in LiveClaim._fields)).where(session.any_of(claims.c.task_id, task_ids))
    found = {LiveClaim._make(row) for row in await session.rows(chosen)}
    ended = [EndedClaim(*claim, RunOutcome.REPAIRED) for claim in sorted(found - due)]
    await free_held(session, ended)
    await _delete(session, ended)
    await session.insert(claims, [claim._asdict() for claim in sorted(due - found)])
    return found - due, due - found


async def free_held(session: Session, ended: Sequence[EndedClaim]) -> None:
    """Free what was held with these claims, as far as the reason of their end allows.

    The tables of a run whose body may go on become references of the run itself. The rows of `claims` are still there,
    but for completions.
    """
    await keep_held(session, ended)


async def _delete(session: Session, ended: Iterable[EndedClaim]) -> None:
    by_worker: dict[int, list[int]] = {}
    for claim in ended:
        by_worker.setdefault(claim.worker_id, []).append(claim.task_id)
    for worker_id, ids in by_worker.items():
        await session.dialect.delete_claims(session, worker_id, sorted(ids))
