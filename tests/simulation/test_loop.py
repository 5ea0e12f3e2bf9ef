"""The loop whose time is virtual, and its gates."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from tests.simulation.loop import Gate, Stalled, VirtualLoop

HOUR_S = 3600.0


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    opened = VirtualLoop()
    yield opened
    opened.close()


def run(loop: VirtualLoop, work: Coroutine[Any, Any, Any]) -> Any:
    return loop.run_until_complete(work)


def test_an_hour_passes_at_once(loop: VirtualLoop) -> None:
    run(loop, asyncio.sleep(HOUR_S))  # the test's own time limit ends it if the hour is real
    assert loop.time() == pytest.approx(HOUR_S)


def test_waiting_for_what_never_comes_is_noticed(loop: VirtualLoop) -> None:
    with pytest.raises(Stalled):
        run(loop, asyncio.Event().wait())


class Diary:
    """What a coroutine did, and when."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.lines: list[tuple[str, float]] = []

    def note(self, what: str) -> None:
        self.lines.append((what, round(self.loop.time(), 3)))

    async def write(self) -> None:
        try:
            for _ in range(3):
                await asyncio.create_task(asyncio.sleep(1))
                self.note("woke")
        except asyncio.CancelledError:
            self.note("cancelled")
            raise
        finally:
            self.note("cleaned up")


def test_behind_a_shut_gate_nothing_moves_until_it_opens(loop: VirtualLoop) -> None:
    gate, diary = Gate("g"), Diary(loop)

    async def story() -> None:
        written = gate.begin(diary.write)
        await asyncio.sleep(1.5)
        gate.shut()
        await asyncio.sleep(10)
        gate.open()
        await written

    run(loop, story())
    assert diary.lines == [("woke", 1.0), ("woke", 11.5), ("woke", 12.5), ("cleaned up", 12.5)]


def test_a_cancellation_waits_at_the_gate(loop: VirtualLoop) -> None:
    gate, diary = Gate("g"), Diary(loop)

    async def story() -> None:
        written = gate.begin(diary.write)
        await asyncio.sleep(1.5)
        gate.shut()
        written.cancel()
        await asyncio.sleep(10)
        assert diary.lines == [("woke", 1.0)]
        gate.open()
        await asyncio.wait([written])
        assert written.cancelled()

    run(loop, story())
    assert diary.lines == [("woke", 1.0), ("cancelled", 11.5), ("cleaned up", 11.5)]


def test_what_a_coroutine_raised_is_told(loop: VirtualLoop) -> None:
    gate = Gate("g")
    told: list[BaseException] = []
    gate.on_failure = told.append

    async def fails() -> None:
        raise ValueError("no")

    async def story() -> None:
        await asyncio.wait([gate.begin(fails)])

    run(loop, story())
    assert [str(error) for error in told] == ["no"]
