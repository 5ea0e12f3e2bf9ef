"""The worker: claims ready tasks as its slots become free, runs them, and reports them in batches.

Its coroutines share one event loop: one claims, one reports, one releases claims that have waited too long, one watches
the cut-off, and each run has one. If calls to the coordinator fail, it tries again until it is told to stop; only a
worker that cannot report for very long ends by itself (WorkerStuck).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from aaiclick.backoff import Backoff
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.errors import SessionOver
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Executor
from aaiclick.orchestration.execution.final_reports import LAST_WORDS_S, end_tasks, once
from aaiclick.orchestration.execution.held_claims import held_claim
from aaiclick.orchestration.execution.holdings import Holdings, Key
from aaiclick.orchestration.execution.prefetch import WAIT_S_MAX, Prefetch
from aaiclick.orchestration.execution.registration import SHUT_OUT, begin_session, renew
from aaiclick.orchestration.execution.report_queue import ReportQueue, say_refused
from aaiclick.orchestration.execution.running_bodies import RunningBodies
from aaiclick.orchestration.execution.runs.run_services import WorkerServices
from aaiclick.orchestration.execution.runs.run_spans import run_spans
from aaiclick.orchestration.execution.starting import start_unless
from aaiclick.orchestration.models import Claim, Orders, Report
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.telemetry.fields import about

log = logging.getLogger("aaiclick")

POLL_S_MIN, POLL_S_MAX = 0.01, 3.0
"""Bounds of an idle worker's polling interval. It doubles while there is no work; a hint ends it at once."""

UNREPORTED_MAX = 4
"""A worker stops claiming while it has more unacknowledged reports than this many times its concurrency."""

CLAIM_S_MAX = 60.0
"""The timeout of a claim call, after which it is made again on another connection: the network may have dropped it."""


class TaskWorker:
    """One worker. If its session ends, it kills its runs and begins another session."""

    def __init__(
        self,
        coordinator: Coordinator,
        executor: Executor,
        *,
        concurrency: int,
        reserved_for: int = 0,
        lanes: Sequence[int] | None = None,
        name: str | None = None,
        node: NodeDescription | None = None,
        max_tasks: int | None = None,
        grace_s: float = 30.0,
        clock: Clock = SYSTEM_CLOCK,
        session: int | None = None,
        hold_s: float = 0.0,
    ) -> None:
        self.coordinator = coordinator
        self.executor = executor
        self.concurrency = concurrency
        self.reserved_for = reserved_for
        """Claim only tasks that are reserved for this worker id; 0 for tasks that are not reserved."""
        self.lanes = lanes
        """The lanes from which it claims, in this order; None for all that its node may serve."""
        self.hold_s = hold_s  # for how long a server may hold a claim; 0: ask again and again instead
        self.name, self.node = name, node
        self.grace_s = grace_s
        self.clock = clock
        self.id = session or 0
        self.holdings = Holdings()
        self.on_session: Callable[[TaskWorker], Awaitable[None]] = _nothing
        """Called when a session has begun, which needs a heartbeat."""
        self.on_reported: Callable[[], None] = lambda: None
        """Called when reports were acknowledged."""
        self._left = max_tasks
        """How many more runs may begin; None for any number."""
        self._call = 0
        self._prefetch = Prefetch()
        self._report_queue = ReportQueue(coordinator, clock, self._told)
        self._services = WorkerServices(coordinator, clock, lambda key: self.holdings.uses_tables(key))
        executor.services = self._services
        # tasks reserved for a `job_test` are started by no other worker, so it needs no cut-off
        self.cutoff = Cutoff(float("inf") if reserved_for else settings().session_s, settings().cancel_grace_s, clock)
        executor.watch(self.cutoff)
        self._bodies = RunningBodies(executor, self.cutoff, concurrency)
        self._spans = run_spans()
        if self._spans is not None:
            self._report_queue.on_answer = self._spans.reported
        self._wake = asyncio.Event()
        self._freed = asyncio.Event()
        self._recalled = asyncio.Event()  # a claim that is held has to be answered now
        self._leaving = asyncio.Event()
        self._hurry = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None
        self._makes_room = False
        """Whether a run has ended of a task that needed something: others of its lane may be allowed now."""

    # ------------------------------------------------------------ lifecycle

    async def run(self) -> None:
        """Claim and run tasks until `stop` is called or `max_tasks` have run. Raises the error of a failed loop."""
        self._services.open()
        if not await start_unless(self._leaving, self.executor):
            if self.id:
                await once(self.id, "deregister", lambda: self.coordinator.deregister(self.id))
            return
        claiming = asyncio.create_task(self._claim_forever())
        sending = asyncio.create_task(self._report_queue.send_forever(lambda: (self.id, self.holdings)))
        tidying = asyncio.create_task(self._give_back_forever())
        watching = asyncio.create_task(self._bodies.watch_forever(self._freed.set))
        leaving = asyncio.create_task(self._leaving.wait())
        claiming.add_done_callback(lambda _: self._freed.set())
        try:
            await asyncio.wait([claiming, sending, tidying, leaving], return_when=asyncio.FIRST_COMPLETED)
            self._leaving.set()  # also if a loop has failed: better to end than to hold a session and do nothing
            self._wake.set()
            self._freed.set()
            await self._until_hurried(claiming.done, LAST_WORDS_S)
            await self._finish(sending)
        finally:
            self._report_queue.close()
            await end_tasks(claiming, sending, tidying, watching, leaving, self._renewing)
            await self._bodies.end_all(self.id)
            await self.executor.close()
        for loop in (claiming, sending, tidying):
            if not loop.cancelled():
                loop.result()

    def stop(self) -> None:
        """Stop claiming, let runs end within the grace, and release the others. A second call releases all at once."""
        if self._leaving.is_set():
            self.executor.kill()
            self._hurry.set()
        self._leaving.set()
        self._recalled.set()

    def wake(self) -> None:
        """Claim now: there may be work."""
        self._wake.set()

    async def _begin_session(self) -> None:
        session = self.id  # of the caller that passed `session`
        if not (session and self.reserved_for):
            asked = partial(begin_session, self.coordinator, self.cutoff, self.name, self.concurrency, self.node)
            self.id = await asked(session, self.clock)
        if self.id != session:
            self.holdings, self._call = Holdings(), 0
        await self.on_session(self)

    async def _finish(self, reporting: asyncio.Task[None]) -> None:
        """Let runs end within the grace, release the others, and send the last reports."""
        if not self.id:  # no session
            return
        await self._give_back(self._prefetch.disperse())
        await self._until_hurried(lambda: not self._bodies, self.grace_s)
        unfinished = [run.claim for run in self.holdings.unfinished()]
        await self._bodies.end_all(self.id)
        if unfinished:
            released = await once(self.id, "release", lambda: self.coordinator.release(self.id, unfinished))
            if released:
                log.warning("worker %s: tasks that did not end in time are given back: %d", self.id, len(released))
        await self._until_hurried(lambda: not len(self._report_queue) and not self.holdings.owing(), LAST_WORDS_S)
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)
        left = self._report_queue.empty()
        if left:  # out of time or hurried: one more try, all in one call
            receipt = await once(self.id, "report", lambda: self.coordinator.report(self.id, left))
            if receipt is not None:
                say_refused(left, receipt)
        completed, failed = self.holdings.take_counts()
        if completed or failed:
            await once(self.id, "beat", lambda: self.coordinator.beat(self.id, completed=completed, failed=failed))
        await once(self.id, "deregister", lambda: self.coordinator.deregister(self.id))

    async def _until_hurried(self, is_so: Callable[[], bool], seconds: float) -> None:
        """Wait until the condition holds, for at most `seconds`, and no longer than until a second `stop`."""

        async def waiting() -> None:
            while not is_so():
                self._freed.clear()
                await self._freed.wait()

        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(waiting()), asyncio.create_task(self._hurry.wait())]
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in tasks:
                each.cancel()

    # ------------------------------------------------------------ claim

    async def _claim_forever(self) -> None:
        await self._begin_session()
        pause_s = POLL_S_MIN
        backoff = Backoff(self.clock)
        while not self._leaving.is_set():
            if self._renewing is not None and self._renewing.done():
                self._renewing.result()  # raises if the worker was shut out
            room = self._room()
            if not room and not (self.id and self.cutoff.is_asking()):
                if self._left == 0 and not self._bodies:
                    self.stop()
                    return
                self._freed.clear()
                await self._freed.wait()
                continue
            self._wake.clear()
            claims = await self._claim(room, backoff)  # limit 0 when cut off: a refusal tells that the session is over
            if room and len(claims) == room:
                pause_s = POLL_S_MIN
                await asyncio.sleep(0)
                continue
            pause_s = POLL_S_MIN if claims or self.hold_s else min(pause_s * 2, POLL_S_MAX)
            if self._leaving.is_set():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(max(pause_s, backoff.pause_s)):
                    await self._wake.wait()

    def _room(self) -> int:
        if not self.id or self.cutoff.is_asking() or len(self._report_queue) > UNREPORTED_MAX * self.concurrency:
            return 0
        free = self._bodies.free
        ahead, wanted = len(self._prefetch), self._prefetch.length_wanted(self.concurrency)
        if not free and 2 * ahead > wanted:  # wait until several are wanted: each call costs a transaction
            return 0
        room = free + max(wanted - ahead, 0)
        return room if self._left is None else min(room, self._left - ahead)

    async def _doubt(self, session: int, over: SessionOver, backoff: Backoff) -> None:
        """Handle a refused claim: the session was ended, or has expired, in which case a renewal may still save it.

        The heartbeat notices this first, unless only its own calls fail.
        """
        try:
            async with asyncio.timeout(CLAIM_S_MAX):
                alive = not over.swept and await renew(self.coordinator, self.cutoff, session)
        except Exception as error:
            backoff.met(f"worker {session}: renewing its session", error)
            return
        if not alive and session == self.id:
            self._lose_session()

    async def _claim(self, room: int, backoff: Backoff) -> Sequence[Claim]:
        """Claim up to `room` tasks, and start or prefetch them.

        If there is no answer, the call is noted as answered with nothing: the next heartbeat releases its claims.
        """
        session, holdings, self._call = self.id, self.holdings, self._call + 1
        asked = partial(self.coordinator.claim, session, limit=room, call=self._call, lanes=self.lanes)
        asked = partial(asked, reserved_for=self.reserved_for, begins=self._bodies.free)
        asked_ns = time.time_ns()  # wall clock, for the trace
        try:
            async with asyncio.timeout(CLAIM_S_MAX):
                is_over = lambda: self._leaving.is_set() or session != self.id  # noqa: E731
                claims = await held_claim(asked, self.hold_s if room else 0.0, self._recalled, is_over)
        except SessionOver as over:
            holdings.answered(self._call, (), self.clock.monotonic())
            await self._doubt(session, over, backoff)
            return ()
        except Exception as error:
            if isinstance(error, SHUT_OUT):
                raise
            holdings.answered(self._call, (), self.clock.monotonic())
            backoff.met(f"worker {session}: claiming", error)
            return ()
        backoff.over()
        if session != self.id:  # the session ended meanwhile, and its claims are being recovered
            return ()
        holdings.answered(self._call, claims, self.clock.monotonic())
        if self._spans is not None:
            self._spans.claimed(claims, asked_ns)
        if self._leaving.is_set() and claims:
            holdings.drop([(claim.task_id, claim.epoch) for claim in claims])
            await once(session, "release", lambda: self.coordinator.release(session, claims))
            return ()
        now = self.clock.monotonic()
        for claim in claims:
            if self._bodies.free > 0 and not self.cutoff.is_asking():
                self._begin(claim, now)
            else:
                self._prefetch.join(claim, now)
        return claims

    async def _give_back_forever(self) -> None:
        """Release prefetched claims that have waited too long for a slot."""
        while True:
            await self._prefetch.filled.wait()
            await self.clock.sleep(WAIT_S_MAX)
            await self._give_back(self._prefetch.disperse(self.clock.monotonic() - WAIT_S_MAX))

    async def _give_back(self, claims: Sequence[Claim]) -> None:
        if not claims:
            return
        session = self.id
        self.holdings.drop([(claim.task_id, claim.epoch) for claim in claims])
        await once(session, "release", lambda: self.coordinator.release(session, claims))

    # ------------------------------------------------------------ run

    def _begin(self, claim: Claim, now: float) -> None:
        key, holdings = (claim.task_id, claim.epoch), self.holdings
        if self._left is not None:
            self._left -= 1
        if self._spans is not None:
            self._spans.began(claim)
        self._bodies.begin(claim, partial(holdings.begun, key), partial(self._ended, claim, key, holdings, now))

    def _begin_next(self) -> None:
        """Start prefetched claims while slots are free."""
        while (
            self._prefetch
            and self.id
            and self._bodies.free > 0
            and not (self._leaving.is_set() or self.cutoff.is_asking())
        ):
            self._begin(self._prefetch.next(), self.clock.monotonic())

    def _ended(self, claim: Claim, key: Key, holdings: Holdings, began: float, run: asyncio.Task[Report]) -> None:
        """Handle the end of a body. A run that this worker stopped has no report; only its tables are freed."""
        now = self.clock.monotonic()
        self._prefetch.learn(now - began)
        self._makes_room |= bool(claim.lane)
        report = self._bodies.take_report(claim, run)
        if self._spans is not None:
            self._spans.ended(claim, report)
        is_ours, used_tables = holdings is self.holdings and self.id, holdings.holds_tables(key)
        if report is None:
            holdings.drop([key])
            if is_ours:
                self._report_queue.put_dead(key)
        elif is_ours:
            holdings.ended(key, now)
            self._report_queue.put(replace(report, holds=True) if used_tables else report)
        self._begin_next()
        self._freed.set()

    def _told(self) -> None:
        self._freed.set()
        if self._makes_room:
            self._makes_room = False
            self._wake.set()
        self.on_reported()

    # ------------------------------------------------------------ orders

    def obey(self, orders: Orders) -> None:
        """Carry out the orders of a heartbeat. Call it on the worker's loop."""
        if not orders.alive:
            self._lose_session()
            return
        for key, why in orders.stop.items():
            if self._bodies.stop(key):
                fields = about(task=key[0], epoch=key[1])
                log.info("task %s (epoch %s): %s, its run is stopped", *key, why, extra=fields)
            elif self._prefetch.leave(key):
                self._report_queue.put_dead(key)
                self.holdings.drop([key])
        self._begin_next()
        if orders.drain and not self._leaving.is_set():
            log.info("worker %s: asked to drain", self.id)
            self.stop()

    def _lose_session(self) -> None:
        """Stop all runs and begin another session: the old one is over, and its claims with it."""
        if self._renewing is not None and not self._renewing.done():
            return
        if self._leaving.is_set():  # the worker may have deregistered itself
            self._bodies.stop_all()
            return
        count = len(self._bodies)
        log.warning("worker %s: its session has ended; it kills its %d runs and registers again", self.id, count)
        self.id = 0
        self._recalled.set()
        self._prefetch.disperse()
        self._report_queue.empty()
        self._renewing = asyncio.create_task(self._renew())
        self._renewing.add_done_callback(lambda _: self._freed.set())

    async def _renew(self) -> None:
        await self._bodies.end_all(self.id)
        await self._begin_session()


async def _nothing(worker: TaskWorker) -> None:
    """Do nothing; the default of `TaskWorker.on_session`."""
