"""Stored tasks that a job's result comes to refer to: their tables are kept, as those of new tasks are."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import update

from aaiclick.orchestration.models import Done
from aaiclick.orchestration.rules.values.run_tables import tables_named
from aaiclick.orchestration.store.object_tables.inputs import inputs_gone, lock_tables, tables_needed
from aaiclick.orchestration.store.object_tables.references import in_batches, pin
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import read_named
from aaiclick.orchestration.store.tables import tasks


def returned_stored(done: Done) -> bool:
    """Return whether a run returned a task or group that it has not made."""
    if done.children is None:
        return False
    made = {task.id for task in done.children.tasks} | {group.id for group in done.children.groups}
    return any(node not in made for _, node in done.children.returned)


async def named_by(session: Session, dones: Sequence[Done]) -> frozenset[int]:
    """Return the tasks that these results refer to, directly or through other results.

    The caller has locked the graph: no run returns tasks meanwhile, so no more tasks can come to be named.
    """
    if not dones:
        return frozenset()
    found = await read_named(session, [done.result_json for done in dones])
    return frozenset(found.texts)


async def keep_stored(session: Session, job_id: int, dones: Sequence[Done], named: Collection[int]) -> None:
    """Set `kept` on these locked tasks, and pin the tables of complete ones; the others pin theirs when they complete.

    Raise InputsGone if tables of complete tasks are gone: the job would have a result that nobody can read.
    """
    for batch in in_batches(sorted(named)):
        await session.run(update(tasks).where(tasks.c.id.in_(batch), tasks.c.kept.is_(False)).values(kept=True))
    for done in dones:
        own = tables_named(done.result_json)
        needed = await tables_needed(session, {done.task_id: done.result_json})
        tables = {table for _, table in needed} - own
        gone = await lock_tables(session, tables)
        if gone:
            hint = "Return them from the tasks that make them, or clear those: clear_task(…)."
            raise await inputs_gone(session, needed, gone, verb="returned", hint=hint)
        await pin(session, [(job_id, table) for table in tables])
