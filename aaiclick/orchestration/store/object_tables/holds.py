"""Registration of tables before they are made, so that every table in ClickHouse has a row in `table_context_refs`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select

from aaiclick.errors import NotFound
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.rules.values.reference_marks import mentions_objects
from aaiclick.orchestration.rules.values.run_tables import run_table
from aaiclick.orchestration.store.dialects.contract import ClaimedTask
from aaiclick.orchestration.store.dialects.table_moves import Hold as Hold
from aaiclick.orchestration.store.dialects.table_moves import Key
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.object_tables.inputs import InputReading
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import FoundResults
from aaiclick.orchestration.store.tables import installation, jobs, table_context_refs


async def hold_tables(session: Session, worker_id: int, holds: Sequence[Hold]) -> set[Key]:
    """Register tables that these runs are about to make, with a reference each; return the runs that may make them.

    A run that is missing from the answer has lost its claim. The inputs of a run need no reference: its task is pinned
    on them while it is live, and `keep_held` writes the references when the claim is taken away.
    """
    return await session.dialect.tables.hold(session, worker_id, holds)


async def register_first(
    session: Session, worker_id: int, taken: Sequence[ClaimedTask], found: FoundResults
) -> set[int]:
    """Register the first table of each of these claims whose arguments refer to tables; return their tasks.

    Most runs that read a table make one. Registered together with the claim, it needs no commit of its own.
    """
    if not any(map(mentions_objects, (*(task.kwargs for task in taken), *found.texts.values()))):
        return set()
    reading = InputReading(found)
    given = [task for task in taken if _is_given_tables(reading, task.kwargs)]
    if not given:
        return set()
    holds = [Hold(task.id, task.epoch, (run_table(task.id, task.epoch, 1),)) for task in given]
    passed = await session.dialect.tables.hold(session, worker_id, holds, refer=False)
    return {task for task, _ in passed}


def _is_given_tables(reading: InputReading, kwargs: str) -> bool:
    try:
        return reading.reaches_any(kwargs)
    except (ValueError, TypeError, LookupError, AttributeError):  # arguments that cannot be read: the run reports it
        return False


async def register_given(session: Session, job_id: int, names: Sequence[str], mode: str | None) -> None:
    """Register tables that are about to be made for the arguments of a job.

    `mode` is the job's preservation mode; None means that of the stored job. Raise NotFound if there is no such job.
    """
    facts = await _facts(session, job_id) if mode is None else (mode, await session.now())
    await _register(session, names, job_id, (job_id, 0), facts)


async def _facts(session: Session, job_id: int) -> tuple[str, datetime]:
    """Return the preservation mode of a stored job, and the database's time."""
    chosen = select(jobs.c.preservation_mode, session.dialect.now()).where(jobs.c.id == job_id)
    row: Any = await session.first(chosen)
    if row is None:
        raise NotFound(what="job", field="id", value=job_id, hint="List them with: aaiclick job list")
    return row[0], row[1]


async def _register(
    session: Session, names: Sequence[str], job_id: int, maker: tuple[int, int], facts: tuple[str, datetime]
) -> None:
    mode, now = facts
    row = {
        "context_id": maker[0],
        "job_id": job_id,
        "epoch": maker[1],
        "preserved": mode == PreservationMode.FULL,
        "created_at": now,
    }
    await insert_missing(session, table_context_refs, [{"table_name": name, **row} for name in names])


async def name_of_installation(session: Session) -> str:
    """Return the random name of this installation; the first call stores it."""
    found = await session.scalar(select(installation.c.id))
    if found is None:
        await insert_missing(session, installation, [{"slot": 1, "id": secrets.token_hex(16)}])
        found = await session.scalar(select(installation.c.id))
    return str(found)
