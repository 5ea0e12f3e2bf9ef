"""Nodes and placement in a simulation: what tasks say, what nodes have, and what must hold of both."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.placement import needs_of
from aaiclick.orchestration.store.nodes.states import remove_node, set_state

if TYPE_CHECKING:
    from tests.simulation.fate import Fate
    from tests.simulation.state import State

LIMITED = "some.module.limited"
"""The function of which one task at a time may run on a node."""

PLACES: tuple[tuple[str, Any], ...] = (
    ("some.module.t", None),
    ("some.module.t", "gpu == nvidia"),
    ("some.module.t", "cpu_cores >= 4"),
    (LIMITED, {}),
    (LIMITED, {"where": "gpu == nvidia"}),
    ("some.module.spread", {"spread": True, "max_parallel_per_node": None, "patience_s": 3}),
    ("some.module.t", {"prefers": "gpu == nvidia", "max_parallel_per_node": None, "patience_s": 4}),
    ("some.module.t", {"forbidden_nodes": ["node-0"], "max_parallel_per_node": None}),
)

NODES = 3

RUNNING = """
SELECT n.name, count(*) FROM claims c JOIN workers w ON w.id = c.worker_id JOIN nodes n ON n.id = w.node_id
JOIN tasks t ON t.id = c.task_id WHERE t.entrypoint = ? GROUP BY n.name HAVING count(*) > 1"""
PLACED = """
SELECT l.needs, n.name, n.pool, n.capabilities, n.executor_types, n.state <> 'open' FROM tasks t
JOIN workers w ON w.id = ? LEFT JOIN nodes n ON n.id = w.node_id LEFT JOIN lanes l ON l.id = t.lane WHERE t.id = ?"""


def place(task: Task, dice: random.Random) -> None:
    """Let a new task say where it may run."""
    task.entrypoint, placement = dice.choice(PLACES)
    task.needs = needs_of(placement)


def node_of(number: int, *, is_calm: bool) -> NodeDescription:
    """Several hosts are of one node. Those that come with the calm have whatever a task may need."""
    if is_calm:
        return NodeDescription(f"calm-{number}", capabilities={"gpu": "nvidia", "cpu_cores": 8})
    which = number % NODES
    has = {"gpu": "nvidia" if which == 0 else None, "cpu_cores": 2 + 2 * which}
    return NodeDescription(f"node-{which}", capabilities=has)


def misplaced(state: State, events: Sequence[Any]) -> Iterator[str]:
    """What a commit has placed wrongly: on a node that lacks something, that is full, or that is closed."""
    for event in events:
        if event[4] != "claim":
            continue
        for needs, name, pool, has, executors, is_closed in state.rows(PLACED, event[6], event[2]):
            if is_closed:
                yield f"a closed node gets no task: {event[2]} on {name}"
            if needs is not None and not fits(json.loads(needs), name, pool, json.loads(has), json.loads(executors)):
                yield f"a node meets what its tasks need: {event[2]} needs {needs}, {name} has {has}"
    for name, count in state.rows(RUNNING, LIMITED):
        yield f"one limited task at a time runs on a node: {count} on {name}"


def fits(needs: dict[str, Any], name: str, pool: str | None, has: dict[str, Any], executors: list[str]) -> bool:
    """Whether a node meets these needs: written once more, and simpler, for the few kinds there are here."""
    for capability, sign, value in needs.get("where", ()):
        if (has[capability] < value) if sign == ">=" else (has[capability] != value):
            return False
    return name not in needs.get("forbidden", ())


class Operator:
    """Someone who closes, opens and removes nodes."""

    def __init__(self, fate: Fate) -> None:
        self.fate = fate

    def _some(self) -> str | None:
        names = [row[0] for row in self.fate.world.state.rows("SELECT name FROM nodes ORDER BY name")]
        return self.fate.dice.choice(names) if names else None

    async def close_or_open(self) -> None:
        name, state = self._some(), self.fate.dice.choice([NodeState.OPEN, NodeState.CORDONED, NodeState.CORDONED])
        if name is not None:
            await self.fate.database.transact(lambda session: set_state(session, name, state))

    async def empty(self) -> None:
        name = self._some()
        if name is not None:
            await self.fate.database.transact(lambda session: set_state(session, name, NodeState.DRAINING))

    async def remove(self) -> None:
        """Refused while one of its workers is alive."""
        name = self._some()
        if name is not None:
            await self.fate.database.transact(lambda session: remove_node(session, name, 6))
