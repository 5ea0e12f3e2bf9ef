"""Reports on their way to the state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.errors import WorkerStuck
from aaiclick.orchestration.execution import report_queue as module
from aaiclick.orchestration.execution.holdings import Holdings
from aaiclick.orchestration.execution.report_queue import AT_ONCE, STUCK_SESSIONS, ReportQueue
from aaiclick.orchestration.models import Claim, Done, Receipt, Report
from tests.support.clocks import HandClock
from tests.support.orchestra import until


class Desk:
    """A coordinator that only takes reports."""

    def __init__(self) -> None:
        self.batches: list[list[Report]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.refused: set[int] = set()
        self.due_s: float | None = None
        self.promoted = 0
        self.tried = 0
        self.on_try: Callable[[], None] = lambda: None
        self.dead: list[tuple[int, int]] = []
        self.late: set[tuple[int, int]] = set()
        self.conflicts: set[tuple[int, int]] = set()

    async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
        await self.open.wait()
        self.dead += runs

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        self.tried += 1
        self.on_try()
        await self.open.wait()
        if any(report.task_id in self.refused for report in reports):
            raise RuntimeError("a fault")
        self.batches.append(list(reports))
        runs = {(report.task_id, report.epoch) for report in reports}
        conflicts = runs & self.conflicts
        return Receipt(runs - self.late - conflicts, due_s=self.due_s, conflicts=conflicts)

    async def reconcile(self) -> float | None:
        self.promoted += 1
        return None if self.promoted == 2 else 0.01


@asynccontextmanager
async def sending(
    desk: Desk, holdings: Holdings | None = None, clock: Clock = SYSTEM_CLOCK, session_s: float | None = None
) -> AsyncIterator[ReportQueue]:
    holdings = holdings or Holdings()
    report_queue = ReportQueue(desk, clock, lambda: None)  # type: ignore[arg-type]
    report_queue.session_s = session_s or report_queue.session_s
    going = asyncio.create_task(report_queue.send_forever(lambda: (7, holdings)))
    try:
        yield report_queue
    finally:
        report_queue.close()
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)


async def empty(report_queue: ReportQueue) -> bool:
    return len(report_queue) == 0


async def test_the_first_goes_at_once_and_what_gathers_meanwhile_goes_together() -> None:
    desk = Desk()
    desk.open.clear()
    async with sending(desk) as report_queue:
        report_queue.put(Done(1, 1))
        await asyncio.sleep(0.01)
        for number in range(2, 12):
            report_queue.put(Done(number, 1))
        desk.open.set()
        await until(lambda: empty(report_queue))
    assert [len(batch) for batch in desk.batches] == [1, 10]


async def test_no_transaction_is_larger_than_its_limit() -> None:
    desk = Desk()
    async with sending(desk) as report_queue:
        for number in range(AT_ONCE + 1):
            report_queue.put(Done(number, 1))
        await until(lambda: empty(report_queue))
    assert [len(batch) for batch in desk.batches] == [AT_ONCE, 1]


async def test_a_report_that_is_never_taken_does_not_hold_up_the_others(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.refused = {3}
    async with sending(desk) as report_queue:
        for number in range(8):
            report_queue.put(Done(number, 1))

        async def all_but_one() -> bool:
            return {report.task_id for batch in desk.batches for report in batch} == set(range(8)) - {3}

        await until(all_but_one)
        assert len(report_queue) == 1
        desk.refused = set()
        await until(lambda: empty(report_queue))
    assert "RuntimeError: a fault" in caplog.text


async def test_what_is_acknowledged_is_no_longer_held() -> None:
    desk, holdings = Desk(), Holdings()
    holdings.answered(1, [Claim(5, 1, 7, 8, None, "t", "m.t", "{}", 0, None)], now=0)
    async with sending(desk, holdings) as report_queue:
        report_queue.put(Done(5, 1))
        await until(lambda: empty(report_queue))
    assert len(holdings) == 0


async def test_what_is_due_soon_is_promoted_by_the_worker_itself() -> None:
    desk = Desk()
    desk.due_s = 0.01

    async def twice() -> bool:
        return desk.promoted == 2

    async with sending(desk) as report_queue:
        report_queue.put(Done(5, 1))
        await until(twice)


async def test_what_is_due_late_is_left_to_the_control_loop() -> None:
    desk = Desk()
    desk.due_s = 60
    async with sending(desk) as report_queue:
        report_queue.put(Done(5, 1))
        await until(lambda: empty(report_queue))
        assert report_queue._promotion is None


async def test_what_is_due_sooner_does_not_wait_for_what_is_due_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SOON_S", 3600)
    desk = Desk()

    async def once() -> bool:
        return desk.promoted > 0

    async with sending(desk) as report_queue:
        desk.due_s = 3600
        report_queue.put(Done(5, 1))
        await until(lambda: empty(report_queue))
        desk.due_s = 0.01
        report_queue.put(Done(6, 1))
        await until(once)


async def test_a_promotion_that_is_at_work_is_not_interrupted() -> None:
    desk = Desk()
    desk.due_s = 0.01
    working, going_on = asyncio.Event(), asyncio.Event()

    async def reconcile() -> float | None:
        working.set()
        await going_on.wait()
        desk.promoted += 1
        return None

    desk.reconcile = reconcile  # type: ignore[method-assign]

    async def once() -> bool:
        return desk.promoted == 1

    async with sending(desk) as report_queue:
        report_queue.put(Done(5, 1))
        await working.wait()
        desk.due_s = 0
        report_queue.put(Done(6, 1))
        await until(lambda: empty(report_queue))
        going_on.set()
        await until(once)


async def test_dead_runs_are_told_of_with_and_without_reports() -> None:
    desk = Desk()
    async with sending(desk) as report_queue:
        report_queue.put_dead((1, 1))
        await until(lambda: empty(report_queue))
        desk.open.clear()
        report_queue.put_dead((2, 1))
        report_queue.put(Done(3, 1))
        report_queue.put_dead((4, 1))
        desk.open.set()
        await until(lambda: empty(report_queue))
    assert desk.dead == [(1, 1), (2, 1), (4, 1)]
    assert desk.batches == [[Done(3, 1)]]


async def test_dead_runs_of_a_new_session_are_told_of_though_those_of_the_last_were_on_their_way() -> None:
    desk = Desk()
    desk.open.clear()
    async with sending(desk) as report_queue:
        report_queue.put_dead((1, 1))
        await asyncio.sleep(0)  # on its way
        report_queue.empty()
        report_queue.put_dead((2, 1))
        desk.open.set()
        await until(lambda: empty(report_queue))
    assert desk.dead == [(1, 1), (2, 1)]


# ---------------------------------------------------------------- reports that do not arrive


def owing(clock: HandClock) -> Holdings:
    """One run is over, and the state has just heard of its worker."""
    holdings = Holdings()
    holdings.answered(1, [Claim(5, 1, 7, 8, None, "t", "m.t", "{}", 0, None)], now=clock.now)
    holdings.ended((5, 1), clock.now)
    holdings.heard_at = clock.now
    return holdings


async def test_a_call_that_is_never_answered_is_given_up_and_made_again() -> None:
    desk = Desk()
    desk.open.clear()
    async with sending(desk, session_s=0.01) as report_queue:
        report_queue.put(Done(1, 1))

        async def tried() -> bool:
            return desk.tried >= 3

        await until(tried)
        desk.open.set()
        await until(lambda: empty(report_queue))
    assert desk.batches == [[Done(1, 1)]]


async def test_who_is_heard_and_cannot_report_gives_up_in_the_end() -> None:
    desk, clock = Desk(), HandClock()
    holdings = owing(clock)
    desk.refused = {5}
    desk.on_try = lambda: setattr(holdings, "heard_at", clock.now)
    report_queue = ReportQueue(desk, clock, lambda: None)  # type: ignore[arg-type]
    report_queue.put(Done(5, 1))
    with pytest.raises(WorkerStuck, match="Worker 7 could not report the results of its tasks for"):
        await report_queue.send_forever(lambda: (7, holdings))
    owed_s = holdings.unreported_s(clock.now)
    assert STUCK_SESSIONS * report_queue.session_s <= owed_s < (STUCK_SESSIONS + 1) * report_queue.session_s


async def test_in_an_outage_nobody_gives_up() -> None:
    desk, clock = Desk(), HandClock()
    holdings = owing(clock)
    desk.refused = {5}
    async with sending(desk, holdings, clock) as report_queue:
        report_queue.put(Done(5, 1))

        async def very_late() -> bool:
            return holdings.unreported_s(clock.now) > 3 * STUCK_SESSIONS * report_queue.session_s

        await until(very_late)
        desk.refused = set()
        await until(lambda: empty(report_queue))
    assert len(holdings) == 0


async def test_what_did_not_count_is_said_once_and_is_owed_no_more(caplog: pytest.LogCaptureFixture) -> None:
    desk, answered = Desk(), []
    desk.late, desk.conflicts = {(2, 1)}, {(3, 1)}
    desk.open.clear()
    caplog.set_level("INFO", logger="aaiclick")
    async with sending(desk) as report_queue:
        report_queue.on_answer = lambda reports, accepted: answered.append(accepted)
        for task in (1, 2, 3, 3):
            report_queue.put(Done(task, 1))
        desk.open.set()
        await until(lambda: empty(report_queue))
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert said == [
        ("INFO", "task 2 (epoch 1): its result came too late"),
        ("ERROR", "task 3 (epoch 1): its run reported something else before, which counts"),
    ]
    assert (answered, len(desk.batches)) == ([{(1, 1)}], 1)


async def test_a_session_longer_than_the_longest_call_does_not_shorten_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Desk):
        async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
            if len(patience) < 4:
                raise TimeoutError
            return await super().report(worker_id, reports)

    desk, patience = Slow(), list[float]()

    def noted(seconds: float) -> asyncio.Timeout:
        patience.append(seconds)
        return asyncio.timeout(seconds)

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "timeout": noted}))
    async with sending(desk, clock=HandClock(), session_s=900) as report_queue:
        report_queue.put(Done(1, 1))
        await until(lambda: empty(report_queue))
    assert patience == [900, 900, 900, 900]


async def test_a_release_that_fails_holds_up_no_report(caplog: pytest.LogCaptureFixture) -> None:
    class Refuses(Desk):
        async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
            self.tried += 1
            if self.tried < 5:
                raise RuntimeError("a fault")
            assert self.batches, "the report did not wait"
            self.dead += runs

    desk, clock = Refuses(), HandClock()
    async with sending(desk, clock=clock) as report_queue:
        report_queue.put_dead((1, 1))
        report_queue.put(Done(2, 1))
        await until(lambda: empty(report_queue))
    assert desk.dead == [(1, 1)], "it is tried again"
    assert desk.batches == [[Done(2, 1)]]
    assert "releasing tables of stopped runs fails: RuntimeError: a fault" in caplog.text


async def test_a_report_is_sent_while_a_release_waits_for_its_next_try() -> None:
    class Refuses(Desk):
        async def let_go(self, worker_id: int, runs: Sequence[tuple[int, int]]) -> None:
            self.on_try()
            raise RuntimeError("a fault")

    class Stands(HandClock):
        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    desk, tried = Refuses(), asyncio.Event()
    desk.on_try = tried.set
    async with sending(desk, clock=Stands()) as report_queue:
        report_queue.put_dead((1, 1))
        await tried.wait()
        report_queue.put(Done(2, 1))

        async def reported() -> bool:
            return bool(desk.batches)

        await until(reported)
