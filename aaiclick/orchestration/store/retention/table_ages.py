"""Retention of tables: those of jobs that ended long ago, and those that were registered and never used."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, ScalarSelect, exists, func, select

from aaiclick.orchestration.rules.states import ENDED_JOB, LIVE_TASK
from aaiclick.orchestration.store.object_tables.references import in_batches
from aaiclick.orchestration.store.retention.table_drops import (
    LOOKED_AT_ONCE,
    being_made,
    is_remembered,
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
    """Mark for dropping some tables of jobs that ended longer ago than `ttl_s`; return how many.

    Tables that are preserved, or that results refer to, are marked too; tables that a run or a live task uses, or that
    remembered results refer to, are not.
    A job that runs again by the time its tables are locked keeps them.
    """
    limit = await session.now() - timedelta(seconds=ttl_s)
    return await mark_tables_of(session, jobs.c.status.in_(sorted(ENDED_JOB)), jobs.c.completed_at < limit)


async def mark_tables_of(session: Session, *over: ColumnElement[bool]) -> int:
    """Mark for dropping some unused tables of jobs that meet the conditions `over`; return how many.

    The conditions are checked again after the tables are locked.
    """
    name = table_context_refs.c.table_name
    used = exists().where(table_run_refs.c.table_name == name, ~table_run_refs.c.freed)
    due = (
        select(table_context_refs.c.table_name)
        .join(jobs, jobs.c.id == table_context_refs.c.job_id)
        .where(*over, ~table_context_refs.c.dropping, ~used, _reading() == 0, ~is_remembered())
    )
    names = {row.table_name for row in await session.rows(due.limit(LOOKED_AT_ONCE))}
    if names:
        await lock_rows(session, names)
        still = due.where(table_context_refs.c.table_name.in_(sorted(names)))
        names = {row.table_name for row in await session.rows(still)}
        await mark_dropping(session, sorted(names))
    return len(names)


def _reading() -> ScalarSelect[int]:
    """Return a subquery that counts the live tasks that are pinned on a table.

    A count, because PostgreSQL would turn an EXISTS into a join and read all pins.
    """
    pin = table_pin_refs.c
    chosen = select(func.count()).select_from(table_pin_refs.join(tasks, tasks.c.id == pin.task_id))
    live = (pin.table_name == table_context_refs.c.table_name, ~pin.freed, tasks.c.status.in_(sorted(LIVE_TASK)))
    return chosen.where(*live).correlate(table_context_refs).scalar_subquery()


async def mark_unclaimed(session: Session, age_s: float) -> int:
    """Mark for dropping some tables that were registered more than `age_s` ago and have no reference or pin.

    They were registered for a job, and the process that submitted it died in between. Tables that a stored job
    preserves are left alone. Return how many tables were looked at.
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
    """Return the name of this installation; None if it has none yet, and so never had tables."""
    found: str | None = await session.scalar(select(installation.c.id))
    return found


async def unknown_tables(session: Session, names: Sequence[str]) -> list[str]:
    """Return those of these tables that are not registered, in the given order."""
    known: set[str] = set()
    for batch in in_batches(sorted(names)):
        which = table_context_refs.c.table_name.in_(batch)
        known |= {row.table_name for row in await session.rows(select(table_context_refs.c.table_name).where(which))}
    return [name for name in names if name not in known]
