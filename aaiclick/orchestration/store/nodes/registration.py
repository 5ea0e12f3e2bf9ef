"""Registering nodes: a worker describes its machine, whose row is made if it is new."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sqlalchemy import Row, select, update

from aaiclick.ids import new_id
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.resources.units import write_units
from aaiclick.orchestration.store.session import Session


class Registered(NamedTuple):
    """The node of a worker, and whether its workers may claim tasks."""

    id: int
    state: NodeState

    @property
    def is_open(self) -> bool:
        """Whether its workers may claim tasks."""
        return self.state == NodeState.OPEN


async def register_node(session: Session, said: NodeDescription) -> Registered:
    """Note what a node has, and lock its row: nobody else changes its state before the worker is registered.

    The newest description counts, so the workers of a node should describe it alike.
    """
    row = await lock_node(session, said.name)
    facts: dict[str, Any] = {
        "pool": said.pool,
        "capabilities": json.dumps(said.capabilities, allow_nan=False),
        "executor_types": json.dumps(said.executor_types),
        "resources": json.dumps(said.resources, allow_nan=False),
        "described_at": await session.now(),
    }
    while row is None:  # it may be made, and removed, by others meanwhile
        new = {"id": new_id(), "name": said.name, "state": NodeState.OPEN, "registered_at": facts["described_at"]}
        await insert_missing(session, nodes, [new | facts])
        row = await lock_node(session, said.name)
    await session.run(update(nodes).where(nodes.c.id == row.id).values(facts))
    await write_units(session, row.id, said.resources)
    return Registered(row.id, NodeState(row.state))


async def ensure_node(session: Session, name: str, pool: str | None) -> int:
    """Return the id of the node of this name. If there is none, one that has nothing yet is made."""
    row = await lock_node(session, name)
    return (await register_node(session, NodeDescription(name, pool))).id if row is None else int(row.id)


async def name_of_node(session: Session, node_id: int) -> str | None:
    """Return the name of a node; None if there is none with this id."""
    name: str | None = await session.scalar(select(nodes.c.name).where(nodes.c.id == node_id))
    return name


async def lock_node(session: Session, name: str) -> Row[Any] | None:
    """Lock the row of the node of this name and return it, or None. It is locked before all other rows."""
    return await session.first(select(nodes).where(nodes.c.name == name).with_for_update())
