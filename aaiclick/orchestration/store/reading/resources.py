"""Reading resources, with what is free and who holds the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from sqlalchemy import func, or_, select

from aaiclick.orchestration.rules.resource_standings import ResourceHolder, ResourceInfo
from aaiclick.orchestration.rules.resources import Place, Unit, amount_of
from aaiclick.orchestration.store.definitions.fleet_tables import nodes, resource_grants, resource_units
from aaiclick.orchestration.store.resources.holders import is_claimed
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks

HOLDERS_MAX = 20
"""Holders of one unit that are listed; the others are only counted."""

_UNIT = tuple(resource_units.c[name] for name in Unit._fields)


async def list_units(
    session: Session,
    *,
    names: Collection[str] = (),
    node: str | None = None,
    after: tuple[int, str, int] | None = None,
    limit: int | None = None,
) -> list[ResourceInfo]:
    """Return units in the order of scope, name and slot: those of the whole installation first.

    `after` is the place of the last one on the page before; `node` leaves only those of a node of this name.
    """
    unit = resource_units.c
    chosen = select(*_UNIT, nodes.c.name.label("node")).outerjoin(nodes, nodes.c.id == unit.scope)
    if names:
        chosen = chosen.where(unit.name.in_(sorted(names)))
    if node is not None:
        chosen = chosen.where(nodes.c.name == node)
    if after is not None:
        scope, name, slot = after
        same = (unit.scope == scope, unit.name == name)
        chosen = chosen.where(
            or_(unit.scope > scope, (unit.scope == scope) & (unit.name > name), same[0] & same[1] & (unit.slot > slot))
        )
    rows = await session.rows(chosen.order_by(unit.scope, unit.name, unit.slot).limit(limit))
    units = [(Unit._make(row[:-1]), row.node) for row in rows]
    held, count = await _sums(session, [unit for unit, _ in units])
    return [
        _shown(unit, name, held[unit[:3]], await _holders(session, unit) if count[unit[:3]] else [], count[unit[:3]])
        for unit, name in units
    ]


async def _sums(session: Session, units: Sequence[Unit]) -> tuple[Counter[Place], Counter[Place]]:
    """Return how much of these units is held, and by how many."""
    grant = resource_grants.c
    place = (grant.scope, grant.name, grant.slot)
    scopes = session.any_of(grant.scope, sorted({unit.scope for unit in units}))
    held: Counter[Place] = Counter()
    count: Counter[Place] = Counter()
    if units:
        chosen = select(*place, func.sum(grant.amount).label("held"), func.count().label("holders"))
        for row in await session.rows(chosen.where(scopes).group_by(*place)):
            key = (row.scope, row.name, row.slot)
            held[key], count[key] = int(row.held), row.holders
    return held, count


async def _holders(session: Session, unit: Unit) -> list[ResourceHolder]:
    grant = resource_grants.c
    chosen = (
        select(grant.task_id, grant.epoch, grant.worker_id, grant.amount, is_claimed().label("is_claimed"))
        .add_columns(tasks.c.job_id, tasks.c.name)
        .outerjoin(tasks, tasks.c.id == grant.task_id)
        .where(grant.scope == unit.scope, grant.name == unit.name, grant.slot == unit.slot)
        .order_by(grant.task_id, grant.epoch)
        .limit(HOLDERS_MAX)
    )
    return [
        ResourceHolder(
            task_id=row.task_id,
            job_id=row.job_id,
            name=row.name or "",
            epoch=row.epoch,
            worker_id=row.worker_id,
            amount=amount_of(row.amount),
            is_ending=not row.is_claimed,
        )
        for row in await session.rows(chosen)
    ]


def _shown(unit: Unit, node: str | None, held: int, holders: Sequence[ResourceHolder], count: int) -> ResourceInfo:
    return ResourceInfo(
        name=unit.name,
        node=node,
        slot=unit.slot,
        size=amount_of(unit.size),
        free=amount_of(unit.size - held),
        device=unit.device,
        memory_mb=unit.memory_mb,
        holders=holders,
        more=count - len(holders),
        scope=unit.scope,
    )
