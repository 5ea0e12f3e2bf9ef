"""Removal of the tasks and groups that a run made, when its task is cleared: the next run makes its own.

Only the events and the run history of removed tasks stay. The rest of the graph is left as if they had never been
there, so that clearing can go on from that.
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
    """Delete the tasks and groups that runs of the cleared tasks made; the caller has locked the graph.

    To keep the usual order of locks, all tasks that clearing locks later are locked here.
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
    """End the claims of the live tasks, and write an event for the removal of each task."""
    now = await session.now()
    live = [row for row in locked if row.status in LIVE_TASK]
    await end_claims(session, [run_row(row, RunOutcome.CLEARED, now) for row in live])
    if live:
        session.hints.add(ORDERS)
    await session.insert(events, [task_event(row, "remove", row.status, now) for row in locked])


async def _cut_edges(session: Session, nodes: Sequence[int]) -> None:
    """Delete the edges from and to removed nodes, and correct the counters of the nodes at their other ends."""
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
            open_edges.append(edge)  # a task at that end is cleared, and counted from scratch
    await session.run(delete(dependencies).where(touching))
    for kind, table in (("task", tasks), ("group", groups)):
        if fewer[kind]:
            await shift(session, table.c.dependents_count, fewer[kind])
    await _wait_for_less(session, open_edges)


async def _wait_for_less(session: Session, edges: Sequence[Row[Any]]) -> None:
    """Lower the `unmet_count` of groups that wait for removed nodes which were not complete."""
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
    ruled = await read_rules(session, {edge.next_id for edge in edges})  # counted from scratch with their tasks
    open_edges = [edge for edge in edges if edge.previous_id not in complete and edge.next_id not in ruled]
    less = Counter(edge.next_id for edge in open_edges)
    await shift(session, groups.c.unmet_count, {group: -count for group, count in less.items()})


def _counted(rows: Sequence[Row[Any]]) -> Counter[str]:
    """Return what these tasks contribute to each of the job's counters."""
    counts: Counter[str] = Counter(total_tasks=len(rows))
    for row in rows:
        counts["open_tasks"] += row.status not in ENDED_TASK
        counts["completed_tasks"] += row.status == TaskStatus.COMPLETED
        counts["skipped_tasks"] += row.status == TaskStatus.SKIPPED
        counts["failed_tasks"] += row.status == TaskStatus.FAILED
        counts["failed_critical"] += row.status in FAILED_TASK and row.critical
    return counts
