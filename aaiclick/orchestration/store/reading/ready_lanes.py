"""Looking for lanes that have ready tasks, without reading the tasks themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Integer, Select, bindparam, func, select

from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import ready

LANES_MAX = 10_000
"""Lanes that one look finds at most."""


class LaneHead(NamedTuple):
    """A lane with ready tasks, and the place of the first of them."""

    lane: int
    rank: int
    job_id: int


async def find_lanes(session: Session, reserved_for: int) -> list[LaneHead]:
    """Return the lanes other than the plain one that have ready tasks, at most LANES_MAX.

    It jumps from one lane to the next in the key of `ready`, so its cost is that of the lanes, not of their tasks.
    """
    build = _groups if session.dialect.groups_by_jumping else _jumps
    rows = await session.rows(session.built(build), {"whose": reserved_for, "most": LANES_MAX})
    found: dict[int, LaneHead] = {}
    for row in rows:
        if row.rank is not None and (row.lane not in found or row.rank < found[row.lane].rank):
            found[row.lane] = LaneHead._make(row)
    return list(found.values())


def _groups(_: Dialect) -> Select[Any]:
    """Return the query for the first job of each rank of each lane."""
    key = (ready.c.reserved_for, ready.c.lane, ready.c.rank)
    chosen = select(ready.c.lane, ready.c.rank, func.min(ready.c.job_id).label("job_id"))
    chosen = chosen.where(ready.c.reserved_for == bindparam("whose"), ready.c.lane > PLAIN)
    return chosen.group_by(*key).limit(bindparam("most", type_=Integer))


def _jumps(_: Dialect) -> Select[Any]:
    """Return the query for the first rank and job of each lane."""
    first = select(_next_lane(PLAIN).label("lane")).cte("found", recursive=True)
    found = first.union_all(select(_next_lane(first.c.lane)).where(first.c.lane.is_not(None)))
    head = (ready.c.reserved_for == bindparam("whose"), ready.c.lane == found.c.lane)
    order = (ready.c.reserved_for, ready.c.lane, ready.c.rank, ready.c.job_id)
    rank = select(ready.c.rank).where(*head).order_by(*order).limit(1).correlate(found).scalar_subquery()
    job = select(ready.c.job_id).where(*head).order_by(*order).limit(1).correlate(found).scalar_subquery()
    chosen = select(found.c.lane, rank.label("rank"), job.label("job_id")).where(found.c.lane.is_not(None))
    return chosen.limit(bindparam("most", type_=Integer))


def _next_lane(after: Any) -> Any:
    """Return the first lane behind this one that has ready tasks, as an expression."""
    rows = ready.alias()
    behind = (rows.c.reserved_for == bindparam("whose"), rows.c.lane > after)
    return select(rows.c.lane).where(*behind).order_by(rows.c.reserved_for, rows.c.lane).limit(1).scalar_subquery()
