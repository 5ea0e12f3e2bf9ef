"""Which lanes a worker is given tasks of: those that its node meets, and of these the ones that have work.

All of it is a memory of this process. Each lane is compared with each node once. If the memory is wrong, a claim finds
nothing, or a task waits for the next look; no task is ever given to a node that does not meet its needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from aaiclick.clock import Clock
from aaiclick.orchestration.coordinator.lane_queue import LaneQueue, Place
from aaiclick.orchestration.models.node_info import NodeInfo
from aaiclick.orchestration.rules.affinity import failed_on
from aaiclick.orchestration.rules.lanes import PLAIN, KnownLanes
from aaiclick.orchestration.rules.placement import leaves_to_others, misses, prefers
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.lanes import read_needs
from aaiclick.orchestration.store.reading.nodes import node_of_worker, open_nodes
from aaiclick.orchestration.store.reading.ready_lanes import LaneHead, find_lanes

LOOK_S_MIN, LOOK_S_MAX = 0.1, 30.0
"""Bounds of the pause between two looks for lanes with work."""

LOOK_S_UNUSED = 3.0
"""The pause where no lane was ever seen, so that installations without placement pay next to nothing."""

LOOK_S_PER_LANE = 0.03
"""A look at many lanes costs more, so it is taken less often."""

FULL_S = 1.0
"""How long a node does not ask a lane of which it runs as many tasks as it may, unless one of its runs ends."""

EMPTY_S = 0.1
"""How long lanes with work are asked before the plain one after that was empty."""

PLAIN_S = 1.0
"""How long other lanes are asked before plain tasks that come after theirs; then an urgent one may have arrived."""

NODE_S = 30.0
"""How long what is known of a node is trusted; another worker may have described it anew."""

TRIES_MAX = 16
"""Lanes that one claim call asks at most."""

THERE_S = 1.0
"""How long what is known of all nodes is trusted; it is only read while tasks are not to run where they failed."""

WORKERS_MAX = NODES_MAX = 10_000


class Known(NamedTuple):
    """What is known of a worker's node, and until when."""

    node: NodeInfo | None
    until: float


class LaneChoice:
    """Remembers which lanes have work, and which of them each node may serve."""

    def __init__(self, database: Database, clock: Clock, draw: Callable[[], float]) -> None:
        self.database = database
        self._clock = clock
        self._draw = draw
        self._heads: dict[int, dict[int, Place]] = {}
        """By `reserved_for` and lane: where the first task of each lane is, or was when it was looked at."""
        self._queues: dict[tuple[int, int], LaneQueue] = {}
        """By `reserved_for` and node: the lanes with work that it meets."""
        self._plain: dict[int, tuple[Place | None, float]] = {}
        """By `reserved_for`: where the first plain task is, None if there is none, and until when that is trusted."""
        self._since: dict[int, float] = {}
        """By lane: since when it has had work without a break."""
        self._looked: dict[int, float] = {}
        """By `reserved_for`: when lanes with work were looked for."""
        self._nodes: dict[int, Known] = {}
        """By worker."""
        self._serves: dict[int, dict[int, bool]] = {}
        """By node and lane: whether the node meets the lane's needs."""
        self._full: dict[tuple[int, int], float] = {}
        """By node and lane: until when it is not asked again, since the node runs as many as it may."""
        self._there: Sequence[NodeInfo] = ()
        """The nodes that were open and alive, for tasks that are not to run where they failed."""
        self._there_until = 0.0
        self._failed_on: set[str] = set()
        """The names of nodes of which lanes with work say that the last attempt failed there."""

    @property
    def lanes(self) -> KnownLanes:
        return self.database.lanes

    async def order(self, worker_id: int, reserved_for: int) -> list[int]:
        """Return the lanes to ask, the plain one among them where its next task belongs.

        It comes first unless it was asked lately: then last if it was empty, else behind what is more urgent.
        """
        found = await self.choose(worker_id, reserved_for, dry=False)
        plain, until = self._plain.get(reserved_for, (None, 0.0))
        if not found or until <= self._clock.monotonic():
            return [PLAIN, *found]
        heads = self._heads[reserved_for]
        urgent = found if plain is None else [lane for lane in found if heads[lane] < plain]
        return [*urgent, PLAIN, *found[len(urgent) :]]

    async def choose(self, worker_id: int, reserved_for: int, *, dry: bool) -> list[int]:
        """Return the lanes that have work which this worker may do, the one with the most urgent task first.

        `dry`: the worker has found too little in the lanes that were known to have work.
        """
        node = None if reserved_for else await self._node_of(worker_id)
        if node is None and not reserved_for:
            return []
        await self._look(reserved_for, dry=dry)
        if node is not None:
            await self._look_at_nodes(node)
        return self._first(reserved_for, node)

    async def met(self, worker_id: int, lanes: Sequence[int]) -> list[int]:
        """Return those of these lanes whose needs the worker's node meets; everyone meets the plain one."""
        node = await self._node_of(worker_id)
        await self._learn(lanes)
        return [lane for lane in lanes if lane == PLAIN or (node is not None and self._may_ask(node, lane))]

    def _may_ask(self, node: NodeInfo, lane: int) -> bool:
        return self._meets(node, lane) and not failed_on(self.lanes.needs[lane], node.name)

    def _first(self, reserved_for: int, node: NodeInfo | None) -> list[int]:
        """Return the first lanes that the node may be given tasks of now; without a node, of all."""
        now, key = self._clock.monotonic(), (reserved_for, 0 if node is None else node.id)
        queue = self._queues.get(key)
        if queue is None:
            heads = self._heads.get(reserved_for, {})
            met = heads if node is None else [lane for lane in heads if self._meets(node, lane)]
            queue = self._queues[key] = LaneQueue(heads, met)
        return queue.first(TRIES_MAX, now, lambda lane: 0.0 if node is None else self._rests_until(node, lane, now))

    def _rests_until(self, node: NodeInfo, lane: int, now: float) -> float:
        """Return until when a node does not ask a lane that it meets; a time that has passed if it may."""
        needs = self.lanes.needs[lane]
        until = self._full.get((node.id, lane), 0.0)
        if "patience_s" not in needs:
            return until
        if failed_on(needs, node.name) and leaves_to_others(needs, node, self._there):
            return max(until, now + THERE_S)
        if failed_on(needs, node.name) or not prefers(needs, node):
            until = max(until, self._since.get(lane, now) + needs["patience_s"])
        return until

    def is_patient_no_more(self, lane: int, now: float) -> bool:
        """Return whether tasks of this lane have waited so long that wishes do not count any more."""
        patience_s = self.lanes.needs[lane].get("patience_s", 0.0)
        return bool(now - self._since.get(lane, now) >= patience_s)

    def _meets(self, node: NodeInfo, lane: int) -> bool:
        known = self._serves.setdefault(node.id, {})
        if lane not in known:
            if lane not in self.lanes.needs:
                return False
            known[lane] = not misses(self.lanes.needs[lane], node)
        return known[lane]

    async def _node_of(self, worker_id: int) -> NodeInfo | None:
        now = self._clock.monotonic()
        known = self._nodes.get(worker_id)
        if known is None or known.until <= now:
            if len(self._nodes) >= WORKERS_MAX:
                self._nodes.clear()
            found = await self.database.read(lambda session: node_of_worker(session, worker_id))
            if found is not None and known is not None and known.node is not None and _differ(found, known.node):
                self._serves.pop(found.id, None)
                self._queues.clear()
            known = self._nodes[worker_id] = Known(found, now + NODE_S)
        return known.node

    # ------------------------------------------------------------ looking

    async def _look(self, reserved_for: int, *, dry: bool) -> None:
        """Look for lanes with work, unless that was done lately: soon if the worker is idle, else seldom."""
        now, pause_s = self._clock.monotonic(), self._pause_s(reserved_for)
        due = self._looked.get(reserved_for, float("-inf")) + (pause_s if dry else max(pause_s, LOOK_S_UNUSED))
        if now < due:
            return
        self._looked[reserved_for] = now + (self._draw() - 0.5) * pause_s / 2
        heads = await self.database.read(lambda session: find_lanes(session, reserved_for))
        await self._learn(head.lane for head in heads)
        self._note(reserved_for, heads)

    async def _look_at_nodes(self, node: NodeInfo) -> None:
        """Look which nodes are open and alive, if there is work that failed on this one; not again for a while."""
        now = self._clock.monotonic()
        if node.name in self._failed_on and now >= self._there_until:
            self._there = await self.database.read(lambda session: open_nodes(session, NODES_MAX))
            self._there_until = now + THERE_S

    def _pause_s(self, reserved_for: int) -> float:
        if reserved_for:
            return 0.0
        if not self.lanes.needs:
            return LOOK_S_UNUSED
        return min(LOOK_S_MAX, max(LOOK_S_MIN, LOOK_S_PER_LANE * len(self._heads.get(reserved_for, ()))))

    async def _learn(self, found: Iterable[int]) -> None:
        unknown = {lane for lane in found if lane not in self.lanes.needs}
        if unknown:
            for lane, text in (await self.database.read(lambda session: read_needs(session, unknown))).items():
                self.lanes.learn(lane, text)

    def _note(self, reserved_for: int, heads: Sequence[LaneHead]) -> None:
        now = self._clock.monotonic()
        self._queues = {key: queue for key, queue in self._queues.items() if key[0] != reserved_for}
        self._heads[reserved_for] = {head.lane: (head.rank, head.job_id, 0) for head in heads}
        if not reserved_for:
            self._since = {head.lane: self._since.get(head.lane, now) for head in heads}
            known = [self.lanes.needs.get(head.lane, {}) for head in heads]
            self._failed_on = {needs["previous"] for needs in known if failed_on(needs, needs.get("previous", ""))}
            self._full = {key: until for key, until in self._full.items() if until > now}

    # ------------------------------------------------------------ what claims tell

    def took(self, reserved_for: int, lane: int, last: Place) -> None:
        """Note where a claim that got all that it asked for has ended: what is left of the lane is behind it."""
        if lane == PLAIN:
            self._plain[reserved_for] = last, self._clock.monotonic() + PLAIN_S
        elif lane in (heads := self._heads.get(reserved_for, {})):
            heads[lane] = last

    def is_empty(self, reserved_for: int, lane: int) -> None:
        """Note that a claim has found less in this lane than it asked for."""
        if lane == PLAIN:
            self._plain[reserved_for] = None, self._clock.monotonic() + EMPTY_S
            return
        self._heads.get(reserved_for, {}).pop(lane, None)
        self._since.pop(lane, None)

    def is_full(self, worker_id: int, lane: int) -> None:
        """Note that the node of this worker runs as many tasks of this lane as it may."""
        known = self._nodes.get(worker_id)
        if known is not None and known.node is not None:
            self._full[known.node.id, lane] = self._clock.monotonic() + FULL_S

    def ended(self, worker_id: int) -> None:
        """Note that runs of this worker have ended: its node may have room again."""
        known = self._nodes.get(worker_id)
        if self._full and known is not None and known.node is not None:
            self._full = {key: until for key, until in self._full.items() if key[0] != known.node.id}
            if (queue := self._queues.get((0, known.node.id))) is not None:
                queue.wake()


def _differ(found: NodeInfo, known: NodeInfo) -> bool:
    return (found.id, found.described_at) != (known.id, known.described_at)
