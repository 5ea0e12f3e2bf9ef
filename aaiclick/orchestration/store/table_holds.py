"""Before a run touches tables: it says which, so that nobody drops them, and none is made that nobody knows."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.store.absent import insert_absent
from aaiclick.orchestration.store.reports import lock_claims
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import installation, jobs, table_context_refs, table_run_refs


async def hold_tables(
    session: Session, worker_id: int, run: tuple[int, int], *, inputs: Sequence[str], outputs: Sequence[str]
) -> None:
    """This run uses these tables from now on; its outputs are known before they are made.

    Its inputs are there: its task is pinned on them as long as it is live, and it stays locked meanwhile.
    """
    task_id, epoch = run
    rows = await lock_claims(session, worker_id, {task_id: epoch})
    if not rows:
        raise ClaimLost(task_id=task_id, epoch=epoch, move="hold on tables")
    if outputs:
        await _register(session, outputs, rows[0].job_id, task_id, epoch)
    refs = [
        {"task_id": task_id, "epoch": epoch, "table_name": table, "worker_id": worker_id}
        for table in dict.fromkeys([*inputs, *outputs])
    ]
    await insert_absent(session, table_run_refs, refs)


async def _register(session: Session, names: Sequence[str], job_id: int, maker: int, epoch: int) -> None:
    facts: Any = await session.first(
        select(jobs.c.preservation_mode, session.dialect.now().label("now")).where(jobs.c.id == job_id)
    )
    row = {
        "context_id": maker,
        "job_id": job_id,
        "epoch": epoch,
        "preserved": facts.preservation_mode == PreservationMode.FULL,
        "created_at": facts.now,
    }
    await insert_absent(session, table_context_refs, [{"table_name": name, **row} for name in names])


async def name_of_installation(session: Session) -> str:
    """What this installation is called; the name is given when someone asks first."""
    found = await session.scalar(select(installation.c.id))
    if found is None:
        await insert_absent(session, installation, [{"slot": 1, "id": secrets.token_hex(16)}])
        found = await session.scalar(select(installation.c.id))
    return str(found)
