"""What must come before some nodes, and how that stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select

from aaiclick.orchestration.rules.states import ENDED_TASK, TaskStatus
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, tasks


async def read_edges_into(session: Session, nodes: Sequence[int]) -> dict[int, list[tuple[int, bool]]]:
    """Per node, its predecessors, each with whether it was complete when the dependency was made."""
    into: dict[int, list[tuple[int, bool]]] = {}
    rows = await session.rows(
        select(dependencies.c.previous_id, dependencies.c.next_id, dependencies.c.met).where(
            session.any_of(dependencies.c.next_id, sorted(nodes))
        )
    )
    for row in rows:
        into.setdefault(row.next_id, []).append((row.previous_id, row.met))
    return into


async def read_standings(session: Session, nodes: Iterable[int]) -> tuple[set[int], set[int]]:
    """Which of these tasks and groups are complete, and which have failed."""
    ids = sorted(nodes)
    if not ids:
        return set(), set()
    ended = await session.rows(
        select(tasks.c.id, tasks.c.status).where(
            session.any_of(tasks.c.id, ids), tasks.c.status.in_(sorted(ENDED_TASK))
        )
    )
    counted = await session.rows(
        select(groups.c.id, groups.c.open_count, groups.c.failed_count).where(session.any_of(groups.c.id, ids))
    )
    complete = {row.id for row in ended if row.status == TaskStatus.COMPLETED}
    failed = {row.id for row in ended} - complete
    complete |= {row.id for row in counted if not row.open_count}
    failed |= {row.id for row in counted if row.failed_count}
    return complete, failed
