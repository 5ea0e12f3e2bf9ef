"""The inputs of cleared tasks: tables that other tasks made must still exist when these run again (pitfall T14)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Text, cast, or_, select

from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.values.run_tables import maker_of, tables_named
from aaiclick.orchestration.store.moves.downstream import Downstream, find_downstream
from aaiclick.orchestration.store.object_tables.inputs import inputs_gone, lock_tables, tables_needed
from aaiclick.orchestration.store.object_tables.references import free_pins, in_batches, pin, unpin
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, table_pin_refs, tasks

UPSTREAM = "Clear the tasks that made them too: clear_task(…, upstream=True), or --upstream."
LOST = "They cannot be made again: the tasks that made them are no longer in this job."


async def find_to_clear(
    session: Session, job_id: int, roots: Sequence[int], *, upstream: bool, dry_run: bool
) -> Downstream:
    """Find these tasks with everything downstream; lock the tables that they need from others, so that none is dropped.

    Raise InputsGone if some of these are gone; with `upstream`, add the tasks that made them, as far up as it takes,
    and raise only for tables whose maker is gone. A dry run locks nothing.
    """
    wanted = list(roots)
    while True:
        downstream = await find_downstream(session, job_id, wanted)
        needed = await tables_needed(session, await _arguments(session, downstream.lasting), anew=downstream.tasks)
        gone = await lock_tables(session, {table for _, table in needed}, lock=not dry_run)
        if not gone:
            return downstream
        if not upstream:
            raise await inputs_gone(session, needed, gone, verb="cleared", hint=UPSTREAM)
        makers = await _makers(session, job_id, gone)
        lost = {table for table in gone if maker_of(table) not in makers - downstream.tasks.keys()}
        if lost:
            raise await inputs_gone(session, needed, lost, verb="cleared", hint=LOST)
        wanted += sorted(makers)


async def _arguments(session: Session, task_ids: Sequence[int]) -> dict[int, str]:
    """Return the kwargs of those of these tasks whose arguments may refer to tables."""
    if not task_ids:
        return {}
    mentions = (cast(tasks.c.kwargs, Text).like(f'%"{kind}"%') for kind in ("object", "view", "blob"))
    rows = await session.rows(
        select(tasks.c.id, tasks.c.kwargs).where(
            session.any_of(tasks.c.id, sorted(task_ids)), or_(tasks.c.needs_inputs, *mentions)
        )
    )
    return {row.id: row.kwargs for row in rows}


async def _makers(session: Session, job_id: int, tables: Iterable[str]) -> set[int]:
    """Return the tasks of the job that made these tables and still exist."""
    which = session.any_of(tasks.c.id, sorted({maker_of(table) for table in tables}))
    rows = await session.rows(select(tasks.c.id).where(which, tasks.c.job_id == job_id))
    return {row.id for row in rows}


async def pin_again(session: Session, job_id: int, cleared: Collection[int]) -> None:
    """Pin what the cleared tasks need again, and end the job's pins on what their earlier runs made.

    All their pins end first, and completed results are read after that: a result that arrives in between adds its pins
    itself.
    """
    await free_pins(session, sorted(cleared))
    await pin(session, await tables_needed(session, await _arguments(session, sorted(cleared)), anew=cleared))
    await _free_old_results(session, job_id)


async def _free_old_results(session: Session, job_id: int) -> None:
    """End the job's pins on tables that neither its result nor that of a completed `kept` task names."""
    kept = select(table_pin_refs.c.table_name).where(table_pin_refs.c.task_id == job_id, ~table_pin_refs.c.freed)
    pinned = {row.table_name for row in await session.rows(kept)}
    if not pinned:
        return
    rows = await session.rows(
        select(tasks.c.result).where(
            tasks.c.job_id == job_id, tasks.c.kept.is_(True), tasks.c.status == TaskStatus.COMPLETED
        )
    )
    itself = await session.scalar(select(jobs.c.result).where(jobs.c.id == job_id))
    named = set().union(tables_named(itself), *(tables_named(row.result) for row in rows))
    for batch in in_batches(sorted(pinned - named)):
        await unpin(session, job_id, batch)
