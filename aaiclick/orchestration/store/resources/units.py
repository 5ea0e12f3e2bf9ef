"""The capacities that there are: what nodes say that they have, and what is set for the whole installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select, update

from aaiclick.orchestration.rules.naming.hints import FREED
from aaiclick.orchestration.rules.resources import WORLD, Unit, milli, units_of
from aaiclick.orchestration.store.definitions.fleet_tables import resource_units
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.session import Session

_UNIT = tuple(resource_units.c[name] for name in Unit._fields)


async def write_units(session: Session, node_id: int, offer: Mapping[str, Any]) -> None:
    """Make the units of a node what one of its workers says that it has. The caller has locked the node's row.

    What runs hold is not touched: of a unit that became smaller or is gone, nothing is granted until there is room.
    """
    mine = resource_units.c.scope == node_id
    said = units_of(node_id, offer)
    known = [Unit._make(row) for row in await session.rows(select(*_UNIT).where(mine))]
    if sorted(known) == said:
        return
    await session.run(delete(resource_units).where(mine))
    await session.insert(resource_units, [unit._asdict() for unit in said])
    session.hints.add(FREED)


async def forget_units(session: Session, node_id: int) -> None:
    """Delete the units of a node that is removed, under the lock of its row."""
    await session.run(delete(resource_units).where(resource_units.c.scope == node_id))


async def set_capacity(session: Session, name: str, amount: float) -> None:
    """Make this the capacity of the whole installation, which waits for claims of it that are being made."""
    row = Unit(WORLD, name, 0, milli(amount))._asdict()
    await insert_missing(session, resource_units, [row])
    await session.run(update(resource_units).where(*_of_the_world(name)).values(size=milli(amount)))
    session.hints.add(FREED)


async def remove_capacity(session: Session, name: str) -> bool:
    """Delete a capacity of the whole installation; return whether there was one. What runs hold of it stays theirs."""
    return bool(await session.run(delete(resource_units).where(*_of_the_world(name))))


def _of_the_world(name: str) -> tuple[Any, ...]:
    return resource_units.c.scope == WORLD, resource_units.c.name == name
