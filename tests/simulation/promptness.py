"""Whether ready tasks are begun soon where somebody is idle: hints may be lost, but then somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.host import Host
    from tests.simulation.world import World

PROMPT_S = 15.0
"""Three seconds are between two looks at most; the rest is for slow answers, and sessions that begin anew."""

READY = "SELECT task_id FROM ready WHERE reserved_for = 0"


class Promptness:
    """Looks every now and then, in a world without faults."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._waiting: dict[int, float] = {}
        self._idle: dict[str, float] = {}

    def look(self) -> Iterator[str]:
        now = self.world.loop.time()
        self._waiting = {task: self._waiting.get(task, now) for task in self.world.state.ids(READY)}
        self._idle = {host.name: self._idle.get(host.name, now) for host in self.world.hosts if is_idle(host)}
        for task, since in self._waiting.items():
            for host, idle_since in self._idle.items():
                if now - max(since, idle_since) > PROMPT_S:
                    yield f"whoever is idle finds work: task {task} is ready since {since:.0f}, and {host} does nothing"


def is_idle(host: Host) -> bool:
    """Return whether it should be looking for work."""
    worker = host.worker
    return bool(worker.id) and not worker._leaving.is_set() and not worker._bodies and worker._room() > 0
