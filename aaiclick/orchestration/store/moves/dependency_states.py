"""The inputs of tasks and groups: their edges, their standings, and the trigger rules that weigh them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, select

from aaiclick.orchestration.rules.states import ENDED_TASK, TaskStatus
from aaiclick.orchestration.rules.triggers import Standing, When
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, tasks


async def read_edges_into(session: Session, nodes: Sequence[int]) -> dict[int, list[tuple[int, bool]]]:
    """Return the predecessors of each of these nodes, each with `met` of its edge; nodes without any are absent."""
    into: dict[int, list[tuple[int, bool]]] = {}
    rows = await session.rows(
        select(dependencies.c.previous_id, dependencies.c.next_id, dependencies.c.met).where(
            session.any_of(dependencies.c.next_id, sorted(nodes))
        )
    )
    for row in rows:
        into.setdefault(row.next_id, []).append((row.previous_id, row.met))
    return into


def task_standing(status: str) -> Standing:
    """Return what a task of this status means for nodes that wait for it."""
    return _STANDINGS.get(TaskStatus(status), Standing.OPEN)


_STANDINGS = {
    TaskStatus.COMPLETED: Standing.MET,
    TaskStatus.SKIPPED: Standing.SKIPPED,
    TaskStatus.FAILED: Standing.FAILED,
    TaskStatus.UPSTREAM_FAILED: Standing.FAILED,
    TaskStatus.CANCELLED: Standing.CANCELLED,
}


def group_standing(group: Row[Any]) -> Standing:
    """Return what a group means for nodes that wait for it; one with a cancelled task inside counts as failed."""
    if not group.open_count:
        return Standing.MET
    if not group.failed_count:
        return Standing.OPEN
    return Standing.FAILING if group.unended_count else Standing.FAILED


async def read_standings(session: Session, nodes: Iterable[int]) -> dict[int, Standing]:
    """Return the standings of these tasks and groups; those that are OPEN are absent."""
    ids = sorted(nodes)
    if not ids:
        return {}
    ended = await session.rows(
        select(tasks.c.id, tasks.c.status).where(
            session.any_of(tasks.c.id, ids), tasks.c.status.in_(sorted(ENDED_TASK))
        )
    )
    counted = await session.rows(
        select(groups.c.id, groups.c.open_count, groups.c.failed_count, groups.c.unended_count).where(
            session.any_of(groups.c.id, ids)
        )
    )
    found = {row.id: task_standing(row.status) for row in ended}
    found |= {row.id: group_standing(row) for row in counted}
    return {node: standing for node, standing in found.items() if standing is not Standing.OPEN}


async def read_rules(session: Session, nodes: Iterable[int]) -> dict[int, When]:
    """Return the trigger rules of these tasks and groups; those with ALL_COMPLETED are absent."""
    ids = sorted(nodes)
    rules: dict[int, When] = {}
    for table in (tasks, groups) if ids else ():
        which = (session.any_of(table.c.id, ids), table.c.trigger_rule != When.ALL_COMPLETED)
        rows = await session.rows(select(table.c.id, table.c.trigger_rule).where(*which))
        rules |= {row.id: When(row.trigger_rule) for row in rows}
    return rules
