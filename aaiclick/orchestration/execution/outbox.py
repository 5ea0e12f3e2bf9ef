"""Reports on their way to the state: all that has gathered goes in one transaction, again and again until answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

from aaiclick.clock import Clock
from aaiclick.orchestration.coordinator.contract import Coordinator
from aaiclick.orchestration.execution.holdings import Holdings, Key
from aaiclick.orchestration.models import Receipt, Report
from aaiclick.telemetry.fields import about
from aaiclick.trouble import Trouble

log = logging.getLogger("aaiclick")

AT_ONCE = 500
"""Reports in one transaction."""

REPORT_S_MAX = 600.0
"""After so long a call is given up, and made again on another connection: the network may have swallowed it."""

SOON_S_MIN = 0.01
SOON_S = 3.0
"""A delay up to this had better not wait for the control loop's next round."""


class Outbox:
    """What one worker owes to the state."""

    def __init__(self, coordinator: Coordinator, clock: Clock, answered: Callable[[], None]) -> None:
        self.coordinator = coordinator
        self.clock = clock
        self._answered = answered
        self.on_answer: Callable[[Sequence[Report], Collection[Key]], None] | None = None
        """Hears which reports were acknowledged, and which of them counted."""
        self._reports: list[Report] = []
        self._dead: list[Key] = []
        """Runs that hold tables, are over, and have nothing to report."""
        self._owed = asyncio.Event()
        self._promotion: asyncio.Task[None] | None = None
        self._promoting = Trouble(clock)
        self._promotes_at = float("inf")
        """Until when the promotion sleeps."""

    def __len__(self) -> int:
        return len(self._reports) + len(self._dead)

    def put(self, report: Report) -> None:
        """One more; it travels at once if nothing is on its way, else with the next."""
        self._reports.append(report)
        self._owed.set()

    def put_dead(self, run: Key) -> None:
        """The body of a run that held tables is dead, and nobody wants to know what it came to."""
        self._dead.append(run)
        self._owed.set()

    def empty(self) -> list[Report]:
        """Take out what is left; what dead runs held is freed by whoever finds that the session is over."""
        self._dead = []
        left, self._reports = self._reports, []
        return left

    async def send_forever(self, sender: Callable[[], tuple[int, Holdings]]) -> None:
        """Tell what there is; `sender` says whose reports these are."""
        trouble, size = Trouble(self.clock), AT_ONCE
        while True:
            if not len(self):
                self._owed.clear()
                await self._owed.wait()
            (session, holdings), batch, reports = sender(), self._reports[:size], self._reports
            try:
                async with asyncio.timeout(REPORT_S_MAX):
                    await self._let_go(session)
                    receipt = await self.coordinator.report(session, batch) if batch else Receipt()
            except Exception as error:
                trouble.met(f"worker {session}: reporting", error)
                size = max(1, len(batch) // 2)
                if len(batch) == 1:  # let others pass
                    reports.append(reports.pop(0))
                await self.clock.sleep(trouble.pause_s)
                continue
            trouble.over()
            size = AT_ONCE
            del reports[: len(batch)]
            holdings.acknowledged(batch)
            if self.on_answer is not None:
                self.on_answer(batch, receipt.accepted)
            if len(receipt.accepted) < len(batch):
                _say_late(batch, receipt.accepted)
            self._answered()
            if receipt.due_s is not None and receipt.due_s <= SOON_S:
                self._promote_in(receipt.due_s)

    async def _let_go(self, session: int) -> None:
        if self._dead:
            dead, told = self._dead, self._dead.copy()
            await self.coordinator.let_go(session, told)
            del dead[: len(told)]  # of these: whoever has emptied this meanwhile began another list

    def close(self) -> None:
        """Nobody waits for a promotion any more: the control loop will see to it."""
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
            await self.clock.sleep(max(due_s, SOON_S_MIN))  # what is due may be locked: then it is still due
            self._promotes_at = float("-inf")  # it is at work
            try:
                due_s = await self.coordinator.reconcile()
            except Exception as error:
                self._promoting.met("promoting what is due", error, "whoever leads tries next")
                return
            self._promoting.over()


def _say_late(batch: list[Report], accepted: set[tuple[int, int]]) -> None:
    for late in batch:
        if (run := (late.task_id, late.epoch)) not in accepted:
            log.info("task %s (epoch %s): its result came too late", *run, extra=about(task=run[0], epoch=run[1]))
