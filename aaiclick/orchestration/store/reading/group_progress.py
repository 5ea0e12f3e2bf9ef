"""Progress of a group: its tasks by status."""

from __future__ import annotations

from sqlalchemy import func, select

from aaiclick.orchestration.rules.graphs.graph import descendants
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import groups, tasks


async def count_tasks_in_group(session: Session, group_id: int) -> tuple[str, dict[str, int]] | None:
    """Return the group's name, and the number of its tasks, at any depth, by status; None if there is no such group."""
    group = await session.first(select(groups.c.name, groups.c.job_id).where(groups.c.id == group_id))
    if group is None:
        return None
    rows = await session.rows(select(groups.c.id, groups.c.parent_group_id).where(groups.c.job_id == group.job_id))
    inside = descendants({row.id: row.parent_group_id for row in rows}, [group_id])
    counted = await session.rows(
        select(tasks.c.status, func.count().label("size"))
        .where(session.any_of(tasks.c.group_id, sorted(inside)))
        .group_by(tasks.c.status)
    )
    return group.name, {row.status: row.size for row in counted}
