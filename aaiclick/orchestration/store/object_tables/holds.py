"""Before a run makes tables: it says which, so that none is made that nobody knows."""

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
    """These tables are known from now on, before these runs make them; gives those runs.

    A run that is not among them has lost its claim. What it is given needs no word: its task is pinned on that as long
    as it is live, and whoever takes its claim away writes down what its body may still use.
    """
    return await session.dialect.tables.hold(session, worker_id, holds)


async def register_first(
    session: Session, worker_id: int, taken: Sequence[ClaimedTask], found: FoundResults
) -> set[int]:
    """Register the first table that each of these claims may make which is given any; gives their tasks.

    Most that read a table make one: so they need no commit of their own.
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
    except (ValueError, TypeError, LookupError, AttributeError):  # they cannot be read: the run will say so
        return False


async def register_given(session: Session, job_id: int, names: Sequence[str], mode: str | None) -> None:
    """Tables that are about to be made of what a job is given; without a mode, the stored job's counts."""
    facts = await _facts(session, job_id) if mode is None else (mode, await session.now())
    await _register(session, names, job_id, (job_id, 0), facts)


async def _facts(session: Session, job_id: int) -> tuple[str, datetime]:
    """How a job keeps its tables, and what time it is."""
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
    """What this installation is called; the name is given when someone asks first."""
    found = await session.scalar(select(installation.c.id))
    if found is None:
        await insert_missing(session, installation, [{"slot": 1, "id": secrets.token_hex(16)}])
        found = await session.scalar(select(installation.c.id))
    return str(found)
