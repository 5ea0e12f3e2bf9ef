"""The worker: claims what is ready as its slots free up, runs it, and reports in few transactions.

A few coroutines share one event loop: one claims, one reports, one gives back what has waited too long, and each run is
one. Whatever the state answers, or does not answer, a worker goes on: it tries again until it is told to stop.
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

from aaiclick.backoff import Backoff, insist
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.errors import SessionOver
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.executors.contract import Executor
from aaiclick.orchestration.execution.final_reports import LAST_WORDS_S, end_tasks, once
from aaiclick.orchestration.execution.holdings import Holdings, Key
from aaiclick.orchestration.execution.prefetch import WAIT_S_MAX, Prefetch
from aaiclick.orchestration.execution.registration import register, renew
from aaiclick.orchestration.execution.report_queue import ReportQueue, say_refused
from aaiclick.orchestration.execution.running_bodies import RunningBodies
from aaiclick.orchestration.execution.runs.run_services import WorkerServices
from aaiclick.orchestration.execution.runs.run_spans import run_spans
from aaiclick.orchestration.execution.starting import start_unless
from aaiclick.orchestration.models import Claim, Orders, Report
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.telemetry.fields import about

log = logging.getLogger("aaiclick")

POLL_S_MIN, POLL_S_MAX = 0.01, 3.0
"""How often an idle worker looks for work: less and less often while there is none, at once after a hint."""

UNREPORTED_MAX = 4
"""How many times its concurrency a worker may owe in reports before it claims no more."""

CLAIM_S_MAX = 60.0
"""After so long a call is given up, and made again on another connection: the network may have swallowed it."""


class TaskWorker:
    """One worker, session after session."""

    def __init__(
        self,
        coordinator: Coordinator,
        executor: Executor,
        *,
        concurrency: int,
        reserved_for: int = 0,
        lanes: Sequence[int] = (PLAIN,),
        name: str | None = None,
        max_tasks: int | None = None,
        grace_s: float = 30.0,
        clock: Clock = SYSTEM_CLOCK,
        session: int | None = None,
    ) -> None:
        self.coordinator = coordinator
        self.executor = executor
        self.concurrency = concurrency
        self.reserved_for = reserved_for
        """The worker whose own tasks it runs, and no others; 0 for those that are reserved for nobody."""
        self.lanes = lanes
        """Those whose tasks it may run, in the order in which it looks into them."""
        self.name = name
        self.grace_s = grace_s
        self.clock = clock
        self.id = session or 0
        self.holdings = Holdings()
        self.on_session: Callable[[TaskWorker], Awaitable[None]] = _nothing
        """Called when a session has begun: a new heart must beat for it."""
        self.on_reported: Callable[[], None] = lambda: None
        """Called when reports were acknowledged."""
        self._left = max_tasks
        """How many more may begin."""
        self._call = 0
        self._prefetch = Prefetch()
        self._report_queue = ReportQueue(coordinator, clock, self._told)
        self._services = WorkerServices(coordinator, clock, lambda key: self.holdings.uses_tables(key))
        executor.services = self._services
        # nobody else begins what a `job_test` keeps for itself
        self.cutoff = Cutoff(float("inf") if reserved_for else settings().session_s, settings().cancel_grace_s, clock)
        executor.watch(self.cutoff)
        self._bodies = RunningBodies(executor, self.cutoff, concurrency)
        self._spans = run_spans()
        if self._spans is not None:
            self._report_queue.on_answer = self._spans.reported
        self._wake = asyncio.Event()
        self._freed = asyncio.Event()
        self._leaving = asyncio.Event()
        self._hurry = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    # ------------------------------------------------------------ its life

    async def run(self) -> None:
        """Work until told to stop."""
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
            self._leaving.set()  # also when a loop has failed: better to end than to hold a session and do nothing
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
        """Claim no more, finish within the grace, give back the rest; asked again: give back all at once."""
        if self._leaving.is_set():
            self.executor.kill()
            self._hurry.set()
        self._leaving.set()

    def wake(self) -> None:
        """There may be work: look now."""
        self._wake.set()

    async def _begin_session(self) -> None:
        begun = bool(self.id)  # by someone else
        if begun and not self.reserved_for:
            begun = await insist(
                "renewing the session", lambda: renew(self.coordinator, self.cutoff, self.id), self.clock
            )
        if not begun:
            asked = partial(register, self.coordinator, self.cutoff, self.name, self.concurrency)
            self.id = await insist("registering", asked, self.clock)
            self.holdings, self._call = Holdings(), 0
        await self.on_session(self)

    async def _finish(self, reporting: asyncio.Task[None]) -> None:
        """Let runs end within the grace, give back the others, and tell the last results."""
        if not self.id:  # no session, and so nothing to finish
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
        if left:  # hurried: one more try, in one go
            receipt = await once(self.id, "report", lambda: self.coordinator.report(self.id, left))
            if receipt is not None:
                say_refused(left, receipt)
        completed, failed = self.holdings.take_counts()
        if completed or failed:
            await once(self.id, "beat", lambda: self.coordinator.beat(self.id, completed=completed, failed=failed))
        await once(self.id, "deregister", lambda: self.coordinator.deregister(self.id))

    async def _until_hurried(self, is_so: Callable[[], bool], seconds: float) -> None:
        """Wait until it is so, but not longer, and not when told to hurry."""

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
            room = self._room()
            if not room and not (self.id and self.cutoff.is_asking()):
                if self._left == 0 and not self._bodies:
                    self.stop()
                    return
                self._freed.clear()
                await self._freed.wait()
                continue
            self._wake.clear()
            claims = await self._claim(room, backoff)  # cut off, for nothing: a refusal tells that the session is over
            if room and len(claims) == room:
                pause_s = POLL_S_MIN
                await asyncio.sleep(0)
                continue
            pause_s = POLL_S_MIN if claims else min(pause_s * 2, POLL_S_MAX)
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
        if not free and 2 * ahead > wanted:  # a few at a time: each call costs a transaction
            return 0
        room = free + max(wanted - ahead, 0)
        return room if self._left is None else min(room, self._left - ahead)

    async def _doubt(self, session: int, over: SessionOver, backoff: Backoff) -> None:
        """A claim was refused: the session was ended, or its time is up, and then a beat from here may still save it.

        The heart would know before, unless it is only its beats that do not arrive.
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
        """Claim up to `room` tasks and let them run. A call without an answer is known by the next heartbeat."""
        session, holdings, self._call = self.id, self.holdings, self._call + 1
        asked_ns = time.time_ns()  # for people who look at traces
        try:
            async with asyncio.timeout(CLAIM_S_MAX):
                claims = await self.coordinator.claim(
                    session,
                    limit=room,
                    reserved_for=self.reserved_for,
                    lanes=self.lanes,
                    call=self._call,
                    begins=self._bodies.free,
                )
        except SessionOver as over:
            holdings.answered(self._call, (), self.clock.monotonic())
            await self._doubt(session, over, backoff)
            return ()
        except Exception as error:
            holdings.answered(self._call, (), self.clock.monotonic())
            backoff.met(f"worker {session}: claiming", error)
            return ()
        backoff.over()
        if session != self.id:  # the session ended meanwhile: these are somebody else's by now, or soon
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
        """Claims that were taken ahead of a free slot, and found none soon, are for others to take."""
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
        """Whoever waits in line begins, where a slot is free."""
        while (
            self._prefetch
            and self.id
            and self._bodies.free > 0
            and not (self._leaving.is_set() or self.cutoff.is_asking())
        ):
            self._begin(self._prefetch.next(), self.clock.monotonic())

    def _ended(self, claim: Claim, key: Key, holdings: Holdings, began: float, run: asyncio.Task[Report]) -> None:
        """A body is over. One that this worker stopped has nothing to report: whoever asked for it knows."""
        now = self.clock.monotonic()
        self._prefetch.learn(now - began)
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
        self.on_reported()

    # ------------------------------------------------------------ orders

    def obey(self, orders: Orders) -> None:
        """What a heartbeat brought back."""
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
        """The session is over, and with it every claim: nobody wants these runs any more."""
        if self._renewing is not None and not self._renewing.done():
            return
        if self._leaving.is_set():  # it may have ended its session itself
            self._bodies.stop_all()
            return
        count = len(self._bodies)
        log.warning("worker %s: its session has ended; it kills its %d runs and begins anew", self.id, count)
        self.id = 0
        self._prefetch.disperse()
        self._report_queue.empty()
        self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        await self._bodies.end_all(self.id)
        await self._begin_session()
        self._freed.set()


async def _nothing(worker: TaskWorker) -> None:
    """Nobody wants to know."""
