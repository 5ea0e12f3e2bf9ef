"""The queue of reports that the database has not acknowledged.

All queued reports go in one call, up to `AT_ONCE`, which is repeated until it is answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from aaiclick.backoff import Backoff
from aaiclick.clock import Clock
from aaiclick.config import settings
from aaiclick.errors import WorkerStuck
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.holdings import Holdings, Key
from aaiclick.orchestration.models import Receipt, Report
from aaiclick.telemetry.fields import about

log = logging.getLogger("aaiclick")

AT_ONCE = 500
"""The maximum number of reports in one call."""

REPORT_S_MAX = 600.0
"""The maximum timeout of a call. It starts at a session's length, which may be longer, and doubles with each
timeout."""

STUCK_SESSIONS = 10
"""A worker that cannot report for this many session lengths, although its heartbeats arrive, ends itself. Its claims
are then recovered, and other workers run the tasks."""

PROMOTE_S_MAX = 60.0
SOON_S_MIN = 0.01
SOON_S = 3.0
"""Up to this delay the worker promotes retried tasks itself, instead of leaving them to the control loop."""


class ReportQueue:
    """The outstanding reports of one worker."""

    def __init__(self, coordinator: Coordinator, clock: Clock, answered: Callable[[], None]) -> None:
        self.coordinator = coordinator
        self.clock = clock
        self.session_s = settings().session_s
        self._answered = answered
        self.on_answer: Callable[[Sequence[Report], Collection[Key]], None] | None = None
        """Called with the acknowledged reports, and the runs among them that were accepted."""
        self._reports: list[Report] = []
        self._dead: list[Key] = []
        """Runs that have ended without a report, whose tables must be freed."""
        self._owed = asyncio.Event()
        self._promotion: asyncio.Task[None] | None = None
        self._promoting = Backoff(clock)
        self._freeing = Backoff(clock)
        self._frees_at = float("-inf")
        """When tables of dead runs may be released again after a failure, by the monotonic clock."""
        self._promotes_at = float("inf")
        """When the scheduled promotion wakes, by the monotonic clock; -inf while it is working."""

    def __len__(self) -> int:
        return len(self._reports) + len(self._dead)

    def put(self, report: Report) -> None:
        """Queue a report. It is sent at once if no call is going on, else with the next call."""
        self._reports.append(report)
        self._owed.set()

    def put_dead(self, run: Key) -> None:
        """Queue the release of a stopped run's tables. Its body is dead and its outcome is not reported."""
        self._dead.append(run)
        self._owed.set()

    def empty(self) -> list[Report]:
        """Remove and return all reports. Tables of dead runs are left to the recovery of the ended session."""
        self._dead = []
        left, self._reports = self._reports, []
        return left

    async def send_forever(self, sender: Callable[[], tuple[int, Holdings]]) -> None:
        """Send queued reports until cancelled. `sender` returns the current session and its holdings.

        Raises WorkerStuck if reports fail for too long. A failed batch is halved, and a report that fails alone goes
        to the end of the queue.
        """
        backoff, size, patience_s = Backoff(self.clock), AT_ONCE, self.session_s
        while True:
            await self._until_due()
            await self._let_go(sender()[0])
            if not self._reports:
                continue
            (session, holdings), batch, reports = sender(), self._reports[:size], self._reports
            try:
                async with asyncio.timeout(patience_s):
                    receipt = await self.coordinator.report(session, batch)
            except Exception as error:
                backoff.met(f"worker {session}: reporting", error, "trying again on another connection")
                self._give_up_if_stuck(session, holdings)
                if isinstance(error, TimeoutError):
                    patience_s = max(patience_s, min(2 * patience_s, REPORT_S_MAX))
                size = max(1, len(batch) // 2)
                if len(batch) == 1:  # let the others be sent first
                    reports.append(reports.pop(0))
                await self.clock.sleep(backoff.pause_s)
                continue
            backoff.over()
            size, patience_s = AT_ONCE, self.session_s
            del reports[: len(batch)]
            holdings.acknowledged(batch)
            if self.on_answer is not None:
                self.on_answer(batch, receipt.accepted)
            say_refused(batch, receipt)
            self._answered()
            if receipt.due_s is not None and receipt.due_s <= SOON_S:
                self._promote_in(receipt.due_s)

    def _give_up_if_stuck(self, session: int, holdings: Holdings) -> None:
        """Raise WorkerStuck if reports have failed for too long while heartbeats succeed.

        In an outage heartbeats fail too, and ending the worker would not help.
        """
        now = self.clock.monotonic()
        owed_s = holdings.unreported_s(now)
        if owed_s >= STUCK_SESSIONS * self.session_s and now - holdings.heard_at < self.session_s:
            raise WorkerStuck(worker_id=session, seconds=int(owed_s))

    async def _until_due(self) -> None:
        """Wait until there are reports, or dead runs whose release may be tried."""
        while not self._reports:
            left_s = self._frees_at - self.clock.monotonic()
            if self._dead and left_s <= 0:
                return
            self._owed.clear()
            if not self._dead:
                await self._owed.wait()
                continue
            waits: list[asyncio.Task[Any]] = [asyncio.create_task(self._owed.wait())]
            waits.append(asyncio.create_task(self.clock.sleep(left_s)))
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits:
                    each.cancel()

    async def _let_go(self, session: int) -> None:
        """Release the tables of dead runs. If that fails, it is tried again after a pause; reports do not wait for it.

        They are of other runs: what is wrong with the one call need not be wrong with the other.
        """
        if not self._dead or self.clock.monotonic() < self._frees_at:
            return
        dead, told = self._dead, self._dead.copy()
        try:
            async with asyncio.timeout(self.session_s):
                await self.coordinator.let_go(session, told)
        except Exception as error:
            self._freeing.met(f"worker {session}: releasing tables of stopped runs", error)
            self._frees_at = self.clock.monotonic() + self._freeing.pause_s
            return
        self._freeing.over()
        del dead[: len(told)]  # from the list that was sent: `empty` may have replaced it meanwhile
        self._answered()

    def close(self) -> None:
        """Cancel the scheduled promotion, and leave it to the control loop."""
        if self._promotion is not None:
            self._promotion.cancel()

    def _promote_in(self, seconds: float) -> None:
        if self._promotion is not None and not self._promotion.done():
            if self.clock.monotonic() + seconds >= self._promotes_at:
                return
            self._promotion.cancel()
        self._promotes_at = self.clock.monotonic() + seconds
        self._promotion = asyncio.create_task(self._promote(seconds))

    async def _promote(self, seconds: float) -> None:
        due_s: float | None = seconds
        while due_s is not None and due_s <= SOON_S:
            self._promotes_at = self.clock.monotonic() + due_s
            await self.clock.sleep(max(due_s, SOON_S_MIN))  # a due task that is locked elsewhere is still due: no spin
            self._promotes_at = float("-inf")
            try:
                async with asyncio.timeout(PROMOTE_S_MAX):
                    due_s = await self.coordinator.reconcile()
            except Exception as error:
                self._promoting.met("promoting delayed tasks", error, "the leader promotes it later")
                return
            self._promoting.over()


def say_refused(batch: Sequence[Report], receipt: Receipt) -> None:
    """Log the reports of a batch that were not accepted, and why."""
    if len(receipt.accepted) == len(batch) and not receipt.conflicts:
        return
    for run in dict.fromkeys((report.task_id, report.epoch) for report in batch):
        facts = about(task=run[0], epoch=run[1])
        if run in receipt.conflicts:
            log.error("task %s (epoch %s): its run reported something else before, which counts", *run, extra=facts)
        elif run not in receipt.accepted:
            log.info("task %s (epoch %s): its result came too late", *run, extra=facts)
