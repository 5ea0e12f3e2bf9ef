"""Removing what runs have made whose tasks are to run again: the next run makes its own.

What is removed leaves no trace in the graph but its events and the history of its runs. It leaves the rest as if it had
never been there, so that clearing goes on from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, delete, or_, select, update

from aaiclick.orchestration.rules.naming.hints import ORDERS
from aaiclick.orchestration.rules.states import (
    COMPLETE_TASK,
    ENDED_TASK,
    FAILED_TASK,
    LIVE_TASK,
    RunOutcome,
    TaskStatus,
)
from aaiclick.orchestration.store.claim_ends import end_claims
from aaiclick.orchestration.store.moves.counters import shift
from aaiclick.orchestration.store.moves.dependency_states import read_rules
from aaiclick.orchestration.store.moves.downstream import Downstream
from aaiclick.orchestration.store.moves.early_endings import recount_groups
from aaiclick.orchestration.store.moves.queue import leave_delay, leave_queue
from aaiclick.orchestration.store.object_tables.references import free_pins
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, events, groups, jobs, ripples, tasks
from aaiclick.orchestration.store.transitions import COUNTS, lock_tasks, run_row, task_event


async def remove_made(session: Session, job_id: int, downstream: Downstream) -> None:
    """Remove the tasks and groups that tasks downstream have made; the graph is locked.

    The order of locks is everyone's: all that clearing will lock later is locked here.
    """
    gone = sorted(downstream.made)
    nodes = [*gone, *sorted(downstream.made_groups)]
    await session.run(delete(ripples).where(ripples.c.job_id == job_id, session.any_of(ripples.c.node_id, nodes)))
    every = sorted({*downstream.tasks, *gone})
    await leave_queue(session, session.any_of(tasks.c.id, every))
    locked = [row for row in await lock_tasks(session, every) if row.id in downstream.made]
    await leave_queue(session, session.any_of(tasks.c.id, every))
    await leave_delay(session, [row.id for row in locked])
    await _end_runs(session, locked)
    await _cut_edges(session, nodes)
    await free_pins(session, gone)
    await session.run(delete(tasks).where(session.any_of(tasks.c.id, gone)))
    if downstream.made_groups:
        await session.run(delete(groups).where(session.any_of(groups.c.id, sorted(downstream.made_groups))))
    await recount_groups(session, job_id)
    less = _counted(locked)
    await session.run(
        update(jobs).where(jobs.c.id == job_id).values({name: jobs.c[name] - less[name] for name in COUNTS})
    )


async def _end_runs(session: Session, locked: Sequence[Row[Any]]) -> None:
    """Take the claims of those that run, and write down that all of them were removed."""
    now = await session.now()
    live = [row for row in locked if row.status in LIVE_TASK]
    await end_claims(session, [run_row(row, RunOutcome.CLEARED, now) for row in live])
    if live:
        session.hints.add(ORDERS)
    await session.insert(events, [task_event(row, "remove", row.status, now) for row in locked])


async def _cut_edges(session: Session, nodes: Sequence[int]) -> None:
    """Delete the edges of what goes; those at the other ends wait for less, or are waited for by fewer."""
    touching = or_(
        session.any_of(dependencies.c.previous_id, nodes),
        session.any_of(dependencies.c.next_id, nodes),
    )
    gone = set(nodes)
    fewer: dict[str, Counter[int]] = {"task": Counter(), "group": Counter()}
    open_edges: list[Row[Any]] = []
    for edge in await session.rows(select(dependencies).where(touching)):
        if edge.previous_id not in gone:
            fewer[edge.previous_type][edge.previous_id] -= 1
        elif edge.next_id not in gone and edge.next_type == "group" and not edge.met:
            open_edges.append(edge)  # a task at that end is cleared, and counted anew
    await session.run(delete(dependencies).where(touching))
    for kind, table in (("task", tasks), ("group", groups)):
        if fewer[kind]:
            await shift(session, table.c.dependents_count, fewer[kind])
    await _wait_for_less(session, open_edges)


async def _wait_for_less(session: Session, edges: Sequence[Row[Any]]) -> None:
    """Groups that wait for what goes, and were not told that it completed."""
    if not edges:
        return
    previous = sorted({edge.previous_id for edge in edges})
    complete = {
        row.id
        for row in await session.rows(
            select(tasks.c.id).where(session.any_of(tasks.c.id, previous), tasks.c.status.in_(sorted(COMPLETE_TASK)))
        )
    } | {
        row.id
        for row in await session.rows(
            select(groups.c.id).where(session.any_of(groups.c.id, previous), groups.c.open_count == 0)
        )
    }
    ruled = await read_rules(session, {edge.next_id for edge in edges})  # these are counted anew with their tasks
    open_edges = [edge for edge in edges if edge.previous_id not in complete and edge.next_id not in ruled]
    less = Counter(edge.next_id for edge in open_edges)
    await shift(session, groups.c.unmet_count, {group: -count for group, count in less.items()})


def _counted(rows: Sequence[Row[Any]]) -> Counter[str]:
    """How much of the job's counters these tasks are."""
    counts: Counter[str] = Counter(total_tasks=len(rows))
    for row in rows:
        counts["open_tasks"] += row.status not in ENDED_TASK
        counts["completed_tasks"] += row.status == TaskStatus.COMPLETED
        counts["skipped_tasks"] += row.status == TaskStatus.SKIPPED
        counts["failed_tasks"] += row.status == TaskStatus.FAILED
        counts["failed_critical"] += row.status in FAILED_TASK and row.critical
    return counts
