"""Tables whose time is over: those of jobs that ended long ago, and those that were known and never came into use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, ScalarSelect, exists, func, select

from aaiclick.orchestration.rules.states import ENDED_JOB, LIVE_TASK
from aaiclick.orchestration.store.object_tables.references import in_batches
from aaiclick.orchestration.store.retention.table_drops import (
    LOOKED_AT_ONCE,
    being_made,
    lock_rows,
    mark_dropping,
    mark_given,
    mark_those,
)
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import (
    installation,
    jobs,
    table_context_refs,
    table_pin_refs,
    table_run_refs,
    tasks,
)


async def mark_expired(session: Session, ttl_s: float) -> int:
    """Mark the tables of jobs that ended longer ago than this: preserved or needed, but used by no run.

    A job that is running again by the time its tables are locked keeps them.
    """
    limit = await session.now() - timedelta(seconds=ttl_s)
    return await mark_tables_of(session, jobs.c.status.in_(sorted(ENDED_JOB)), jobs.c.completed_at < limit)


async def mark_tables_of(session: Session, *over: ColumnElement[bool]) -> int:
    """Mark some tables of the jobs of which this is so, if it is still so when the tables are locked."""
    name = table_context_refs.c.table_name
    used = exists().where(table_run_refs.c.table_name == name, ~table_run_refs.c.freed)
    due = (
        select(table_context_refs.c.table_name)
        .join(jobs, jobs.c.id == table_context_refs.c.job_id)
        .where(*over, ~table_context_refs.c.dropping, ~used, _reading() == 0)
    )
    names = {row.table_name for row in await session.rows(due.limit(LOOKED_AT_ONCE))}
    if names:
        await lock_rows(session, names)
        still = due.where(table_context_refs.c.table_name.in_(sorted(names)))
        names = {row.table_name for row in await session.rows(still)}
        await mark_dropping(session, sorted(names))
    return len(names)


def _reading() -> ScalarSelect[int]:
    """How many live tasks are pinned on a table: of a condition PostgreSQL would make a join, and read all pins."""
    pin = table_pin_refs.c
    chosen = select(func.count()).select_from(table_pin_refs.join(tasks, tasks.c.id == pin.task_id))
    live = (pin.table_name == table_context_refs.c.table_name, ~pin.freed, tasks.c.status.in_(sorted(LIVE_TASK)))
    return chosen.where(*live).correlate(table_context_refs).scalar_subquery()


async def mark_unclaimed(session: Session, age_s: float) -> int:
    """Mark tables that have been known for so long, and that nothing refers to or ever did.

    They were to be given to a job, and whoever did so died in between.
    """
    refers = [
        exists().where(references.c.table_name == table_context_refs.c.table_name)
        for references in (table_run_refs, table_pin_refs)
    ]
    rows = await session.rows(
        select(table_context_refs.c.table_name, jobs.c.id.label("job_id"))
        .outerjoin(jobs, jobs.c.id == table_context_refs.c.job_id)
        .where(
            table_context_refs.c.created_at < await session.now() - timedelta(seconds=age_s),
            ~table_context_refs.c.dropping,
            ~table_context_refs.c.preserved | jobs.c.id.is_(None),
            *(~one for one in refers),
            ~being_made(),
        )
        .limit(LOOKED_AT_ONCE)
    )
    await mark_given(session, [row.table_name for row in rows if row.job_id is None])
    await mark_those(session, [row.table_name for row in rows if row.job_id is not None])
    return len(rows)


async def known_installation(session: Session) -> str | None:
    """What this installation is called, if it has ever had tables."""
    found: str | None = await session.scalar(select(installation.c.id))
    return found


async def unknown_tables(session: Session, names: Sequence[str]) -> list[str]:
    """Those of these tables of which nothing is known."""
    known: set[str] = set()
    for batch in in_batches(sorted(names)):
        which = table_context_refs.c.table_name.in_(batch)
        known |= {row.table_name for row in await session.rows(select(table_context_refs.c.table_name).where(which))}
    return [name for name in names if name not in known]
