"""Claiming by a process that has the database: one lane after another, each in a transaction of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aaiclick.backoff import one_line
from aaiclick.clock import Clock
from aaiclick.orchestration.coordinator.lane_choice import LaneChoice
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.placement import room_on_node
from aaiclick.orchestration.rules.resources import Granted
from aaiclick.orchestration.store.claims.claiming import QueueFront, claim_tasks, claims_of_call
from aaiclick.orchestration.store.claims.on_node import count_on_node
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.contract import ReadyKey
from aaiclick.orchestration.store.object_tables.holds import name_of_installation
from aaiclick.orchestration.store.resources.grants import grant, plan_grants
from aaiclick.orchestration.store.session import Session

log = logging.getLogger("aaiclick")

STARTED_JOBS_MAX = 10_000
SWEEP_EVERY = 20_000


@dataclass(slots=True)
class _Asked:
    """A claim call, and what it has got so far."""

    worker_id: int
    limit: int
    reserved_for: int
    call: int
    begins: int
    claims: list[Claim] = field(default_factory=list)


@dataclass(slots=True)
class _Room:
    """How many tasks of a lane are wanted, and how many of these the node may take."""

    wanted: int
    left: int
    plan: list[list[Granted]] | None = None
    """What each of them is granted, if they need resources."""


class Claiming:
    """Claims tasks. It remembers between calls where to begin in the ready queue, and which jobs have started."""

    def __init__(self, database: Database, clock: Clock, draw: Callable[[], float]) -> None:
        self.database = database
        self._clock = clock
        self.fronts: dict[tuple[int, int], QueueFront] = {}
        """By (reserved_for, lane)."""
        self.choice = LaneChoice(database, clock, draw)
        self._claimed = 0
        """Tasks claimed since `sweep_queue` last ran."""

    async def claim(
        self, worker_id: int, *, limit: int, reserved_for: int, lanes: Sequence[int] | None, call: int, begins: int
    ) -> list[Claim]:
        """Claim in these lanes, in this order, until the limit is reached; None: in all that the worker may serve.

        Of these, the lanes with work come first, and plain tasks among them by their urgency, as far as it is known.
        """
        asked = _Asked(worker_id, limit, reserved_for, call, begins)
        if lanes is not None:
            if not reserved_for:
                await self.choice.learn(lanes)
            await self._claim_each(asked, lanes)
        elif limit == 0:
            await self._claim_each(asked, (PLAIN,))
        else:
            await self._claim_each(asked, await self.choice.order(worker_id, reserved_for))
            if len(asked.claims) < limit:
                await self._claim_each(asked, await self.choice.choose(worker_id, reserved_for, dry=True))
        return asked.claims

    async def _claim_each(self, asked: _Asked, lanes: Sequence[int]) -> None:
        for lane in lanes:
            left = asked.limit - len(asked.claims)
            if asked.claims and left <= 0:
                break
            try:
                claims = await self._claim_in(lane, asked, left)
            except Exception as error:
                if not asked.claims:  # claims of earlier lanes are committed: raising would hide them from their worker
                    raise
                log.warning("worker %d: claiming in lane %d: %s", asked.worker_id, lane, one_line(error))
                break
            asked.claims += claims

    async def find(self, worker_id: int, call: int) -> list[Claim]:
        """Return the live claims that this call of the worker made before, whose answer was lost."""
        installation = await installation_of(self.database)
        return await self.database.read(lambda session: claims_of_call(session, worker_id, call, installation))

    async def _claim_in(self, lane: int, asked: _Asked, limit: int) -> list[Claim]:
        front = self.fronts.setdefault((asked.reserved_for, lane), QueueFront())
        began = self._clock.monotonic()
        after = front.begin(began) if self.database.dialect.dead_rows_linger else None
        started = self.database.started_jobs
        installation = await installation_of(self.database)
        looked: list[float] = []
        needs = {} if asked.reserved_for else self.database.lanes.needs.get(lane, {})
        begins = max(0, asked.begins - len(asked.claims))
        if "resources" in needs:  # what waits in the worker for a slot holds resources: one at most
            limit = min(limit, max(1, begins))
        room = _Room(limit, limit)
        is_limited = "entrypoint" in needs or "resources" in needs

        async def work(session: Session) -> list[Claim]:
            if is_limited:
                await self._measure(session, asked, lane, room)
                if not room.left:
                    looked.append(self._clock.monotonic())
                    return []
            taken = await claim_tasks(
                session,
                worker_id=asked.worker_id,
                reserved_for=asked.reserved_for,
                lane=lane,
                limit=room.left,
                after=after,
                started=started,
                call=asked.call,
                begins=begins,
                installation=installation,
                alone=not is_limited,
                on_taken=lambda: looked.append(self._clock.monotonic()),
            )
            return taken if room.plan is None else await grant(session, taken, room.plan, asked.call)

        at_once = self.database.dialect.claims_at_once and not is_limited
        claims = await (self.database.write_one if at_once else self.database.transact)(work)
        _remember(started, {claim.job_id for claim in claims})
        self._claimed += len(claims)
        last = ReadyKey(-claims[-1].priority, claims[-1].job_id, claims[-1].task_id) if claims else None
        if self.database.dialect.dead_rows_linger:
            front.learn(after, last, looked[-1], looked[-1] - began)
        self._tell(lane, asked, room, last, len(claims))
        return claims

    async def _measure(self, session: Session, asked: _Asked, lane: int, room: _Room) -> None:
        """Lock the node, and find out how many tasks of this lane it may take now, and what they are granted."""
        needs = self.database.lanes.needs[lane]
        room.left, room.plan = room.wanted, None  # a transaction that is made again begins anew
        if "entrypoint" in needs:
            running = await count_on_node(session, asked.worker_id, needs["entrypoint"])
            patient = not self.choice.is_patient_no_more(lane, self._clock.monotonic())
            room.left = room_on_node(needs, running, room.wanted, patient=patient)
        if "resources" in needs and room.left:
            room.plan = await plan_grants(session, asked.worker_id, needs["resources"], room.left)
            room.left = len(room.plan)

    def _tell(self, lane: int, asked: _Asked, room: _Room, last: ReadyKey | None, taken: int) -> None:
        """Let the choice of lanes know what became of a claim."""
        if taken < room.left:
            self.choice.is_empty(asked.reserved_for, lane)
        elif last is not None:
            self.choice.took(asked.reserved_for, lane, last)
        if room.left < room.wanted and taken == room.left:
            self.choice.is_full(asked.worker_id, lane)

    async def sweep_queue(self) -> None:
        """Remove dead rows from the queue (PostgreSQL only), once `SWEEP_EVERY` tasks were claimed since the last time.

        The cost grows with the length of the queue; each later claim becomes cheaper.
        """
        if self._claimed >= SWEEP_EVERY:
            self._claimed = 0
            async with self.database.connection() as connection:
                await self.database.dialect.sweep_queue(connection)


def _remember(started: set[int], job_ids: set[int]) -> None:
    """Note that these jobs have started. A job never returns to PENDING, so claims need not start it again."""
    if len(started) > STARTED_JOBS_MAX:
        started.clear()
    started |= job_ids


async def installation_of(database: Database) -> str:
    """Return the name of this installation. It is read once and kept in the Database."""
    if not database.installation:
        database.installation = await database.transact(name_of_installation)
    return database.installation
