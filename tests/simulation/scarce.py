"""Scarce things in a simulation: what nodes and all of them together have, what tasks need, and what must hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.placement import merge, needs_of
from tests.simulation.places import node_of

if TYPE_CHECKING:
    from tests.simulation.bodies import Body
    from tests.simulation.state import State
    from tests.simulation.world import World

SEATS = 2
OFFERS: tuple[dict[str, Any], ...] = (
    {"gpu": 2, "gpu_memory_mb": 10},
    {"gpu": 1, "gpu_memory_mb": 10, "cpu": 2},
    {"cpu": 1},
)
PLENTY: dict[str, Any] = {"gpu": 4, "gpu_memory_mb": 10, "cpu": 4}
NEEDS: list[dict[str, float] | None] = [
    None,
    {"gpu": 1},
    {"gpu": 1},
    {"gpu_memory_mb": 6},
    {"gpu": 2, "gpu_memory_mb": 4},
    {"gpu": 0.5},
    {"cpu": 1},
    {"seat": 1},
    {"seat": 1, "gpu": 1},
]

CHECKS = {
    "no unit is granted more often than it is there": """
        SELECT u.scope, u.name, u.slot, u.size, sum(g.amount) FROM resource_units u
        JOIN resource_grants g ON (g.scope, g.name, g.slot) = (u.scope, u.name, u.slot)
        GROUP BY u.scope, u.name, u.slot HAVING sum(g.amount) > u.size""",
    "whoever holds something has its claim, or a body that was told to stop": """
        SELECT g.task_id, g.epoch, g.name FROM resource_grants g
        LEFT JOIN claims c ON (c.worker_id, c.task_id, c.epoch) = (g.worker_id, g.task_id, g.epoch)
        LEFT JOIN runs r ON (r.task_id, r.epoch) = (g.task_id, g.epoch)
        WHERE c.task_id IS NULL AND (r.outcome IS NULL OR r.outcome NOT IN ('cancelled', 'cleared', 'repaired'))
            AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = g.task_id)""",
    "a claim comes with what its task needs": """
        SELECT c.task_id, c.epoch, l.needs FROM claims c JOIN tasks t ON t.id = c.task_id JOIN lanes l ON l.id = t.lane
        WHERE json_extract(l.needs, '$.resources') IS NOT NULL AND t.reserved_for = 0
            AND NOT EXISTS (SELECT 1 FROM resource_grants g WHERE (g.task_id, g.epoch) = (c.task_id, c.epoch))""",
}
"""Questions whose answer is no row."""


def begin(state: State) -> None:
    """There are so many seats for everybody."""
    state.driver.execute(
        "INSERT INTO resource_units (scope, name, slot, size) VALUES (0, 'seat', 0, ?)", (SEATS * 1000,)
    )


def ask(task: Task, dice: random.Random) -> None:
    """Let a new task need something."""
    task.needs = merge(task.needs, needs_of(None, dice.choice(NEEDS)))


def node_in(world: World, number: int) -> NodeDescription:
    """The node of a host with what it has. Those that come with the calm have whatever a task may need."""
    node = node_of(number, is_calm=world.is_calm)
    offer = PLENTY if world.is_calm else OFFERS[number % len(OFFERS)]
    return replace(node, resources=offer) if world.weather.scarce else node


def misgranted(state: State) -> Iterator[str]:
    """What is wrong with grants after a commit."""
    for name, question in CHECKS.items():
        for row in state.rows(question):
            yield f"{name}: {tuple(row)}"


def crowded(state: State, alive: Iterable[Body]) -> Iterator[str]:
    """A ledger of its own: bodies that are alive use no more than there is, whatever the rows say.

    A body that need not stop when it is cut off may go on while its successor begins; it was asked for.
    """
    used: Counter[tuple[int, str, int]] = Counter()
    for body in alive:
        if body.claim.stop_when_cut_off:
            used.update({grant[:3]: grant.amount for grant in body.claim.grants})
    for scope, name, slot, size in state.rows("SELECT scope, name, slot, size FROM resource_units"):
        if used[scope, name, slot] > size:
            yield f"no unit is used by two: {name} {slot} of {scope}, {used[scope, name, slot]} of {size}"
