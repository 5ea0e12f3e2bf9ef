"""Before a run touches tables: it says which, so that nobody drops them, and none is made that nobody knows."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select

from aaiclick.errors import NotFound
from aaiclick.orchestration.rules.marks import mentions_objects
from aaiclick.orchestration.rules.run_tables import run_table
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.store.absent import insert_absent
from aaiclick.orchestration.store.dialects.contract import ClaimedTask
from aaiclick.orchestration.store.dialects.table_moves import Hold as Hold
from aaiclick.orchestration.store.dialects.table_moves import Key
from aaiclick.orchestration.store.results import Found
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.table_inputs import Reading
from aaiclick.orchestration.store.tables import installation, jobs, table_context_refs

HELD_AT_ONCE = 2_000
"""How many tables are held together with claims."""


async def hold_tables(session: Session, worker_id: int, holds: Sequence[Hold], call: int = 0) -> set[Key]:
    """These runs use these tables from now on, and their outputs are known before they are made; gives those runs.

    A run that is not among them has lost its claim. Its inputs are there: its task is pinned on them as long as it is
    live, and it stays locked meanwhile.
    """
    return await session.dialect.tables.hold(session, worker_id, holds, call)


async def hold_given(
    session: Session, worker_id: int, taken: Sequence[ClaimedTask], found: Found, call: int
) -> dict[int, frozenset[str]]:
    """Hold what the arguments of these claims refer to, and the first name of each that is given any table.

    Most that read a table make one: so they need no commit of their own. Runs that are given very many ask for
    themselves: the claims of all others would wait for them, and a statement may be only so large.
    """
    if not any(map(mentions_objects, (*(task.kwargs for task in taken), *found.texts.values()))):
        return {}
    reading, holds, room = Reading(found), list[Hold](), HELD_AT_ONCE
    for task in taken:
        given = _given(reading, task.kwargs)
        if given and len(given) < room:
            holds.append(Hold(task.id, task.epoch, sorted(given), [run_table(task.id, task.epoch, 1)]))
            room -= len(given) + 1
    held = await hold_tables(session, worker_id, holds, call) if holds else set()
    return {hold.task_id: frozenset((*hold.inputs, *hold.outputs)) for hold in holds if hold[:2] in held}


def _given(reading: Reading, kwargs: str) -> set[str]:
    try:
        return reading.reached(kwargs)
    except (ValueError, TypeError, LookupError, AttributeError):  # they cannot be read: the run will say so
        return set()


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
    await insert_absent(session, table_context_refs, [{"table_name": name, **row} for name in names])


async def name_of_installation(session: Session) -> str:
    """What this installation is called; the name is given when someone asks first."""
    found = await session.scalar(select(installation.c.id))
    if found is None:
        await insert_absent(session, installation, [{"slot": 1, "id": secrets.token_hex(16)}])
        found = await session.scalar(select(installation.c.id))
    return str(found)
