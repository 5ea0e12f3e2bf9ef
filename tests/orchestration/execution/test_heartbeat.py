"""One heartbeat for each worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aaiclick.orchestration.execution import heartbeat as module
from aaiclick.orchestration.execution.heartbeat import WATCH_S, Heartbeat
from aaiclick.orchestration.execution.holdings import Holdings
from aaiclick.orchestration.models import Claim, Orders
from tests.support.clocks import HandClock


class Listening:
    """A coordinator that only hears heartbeats."""

    def __init__(self) -> None:
        self.beats: list[dict[str, Any]] = []
        self.answers: list[Orders | Exception] = []
        self.heard = asyncio.Event()

    async def beat(self, worker_id: int, **said: Any) -> Orders:
        self.beats.append({"worker": worker_id, **said})
        self.heard.set()
        answer = self.answers.pop(0) if self.answers else Orders()
        if isinstance(answer, Exception):
            raise answer
        return answer


def claim(task_id: int = 5) -> Claim:
    return Claim(task_id, 1, 7, 8, None, "t", "m.t", "{}", 0, None)


def heart_of(listening: Listening, every_s: float = 10.0) -> tuple[Heartbeat, list[Orders]]:
    brought: list[Orders] = []
    return Heartbeat(listening, 7, Holdings(), brought.append, every_s=every_s), brought  # type: ignore[arg-type]


async def test_a_beat_says_what_is_held_and_brings_orders() -> None:
    listening = Listening()
    heart, brought = heart_of(listening)
    heart.holdings.answered(3, [claim()], now=0)
    listening.answers = [Orders(drain=True)]
    await heart.beat()
    assert listening.beats[0]["known_call"] == 3
    assert [run.task_id for run in listening.beats[0]["held"]] == [5]
    assert brought == [Orders(drain=True)]


async def test_with_runs_in_hand_it_beats_more_often() -> None:
    heart, _ = heart_of(Listening())
    assert heart.pause_s() == 10
    heart.holdings.answered(1, [claim()], now=0)
    assert heart.pause_s() == WATCH_S


async def test_asked_it_beats_at_once() -> None:
    listening = Listening()
    heart, _ = heart_of(listening, every_s=3600)
    beating = asyncio.create_task(heart.beat_forever())
    await asyncio.sleep(0)
    assert listening.beats == []
    heart.ask()
    async with asyncio.timeout(60):
        await listening.heard.wait()
    beating.cancel()


async def test_what_is_claimed_while_it_rests_makes_it_beat_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle worker's next beat is far away; an order for what it has just claimed must not wait for it."""
    monkeypatch.setattr(module, "WATCH_S", 0.02)
    listening = Listening()
    heart, _ = heart_of(listening, every_s=3600)
    beating = asyncio.create_task(heart.beat_forever())
    await asyncio.sleep(0.05)
    assert listening.beats == []
    heart.holdings.answered(1, [claim()], now=0)
    async with asyncio.timeout(60):
        await listening.heard.wait()
    beating.cancel()


async def test_what_did_not_reach_the_state_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    listening = Listening()
    listening.answers = [ConnectionResetError("gone"), ConnectionResetError("gone"), Orders()]
    heart, brought = heart_of(listening)
    heart.holdings.answered(1, [claim()], now=0)
    heart.holdings.begun((5, 1), None)
    for _ in range(3):
        await heart.beat()
    assert len(brought) == 1
    assert [beat["held"][0].started for beat in listening.beats] == [True, True, True]
    assert caplog.text.count("its heartbeat fails: ConnectionResetError: gone; trying again") == 1
    assert caplog.text.count("its heartbeat works again") == 1


class Slow(Listening):
    """Renews the session at once, and takes for ever to compare what is held."""

    async def beat(self, worker_id: int, **said: Any) -> Orders:
        await super().beat(worker_id, **said)
        said["renewed"]()
        await asyncio.Event().wait()
        raise AssertionError("not reached")


async def test_a_session_is_renewed_also_where_the_rest_of_the_beat_is_not_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lock on one task of the worker's held up its beats, and all its bodies were stopped as if it was cut off."""
    monkeypatch.setattr(module, "BEAT_S_MAX", 0.01)
    heart, brought = heart_of(Slow())
    renewed: list[float] = []
    heart.on_renewed = renewed.append
    heart.holdings.count(2, 1)
    before = heart.clock.monotonic()
    assert await heart.beat() is None
    assert heart.holdings.take_counts() == (0, 0), "they were told with the renewal"
    assert brought == []
    (sent,) = renewed
    assert before <= sent <= heart.clock.monotonic()


@pytest.mark.parametrize(("took_s", "rests"), [(0.1, True), (10.0, False)])
async def test_a_beat_that_was_swallowed_is_made_again_without_a_pause(took_s: float, rests: bool) -> None:
    """Between a beat that is swallowed and the end of the bodies there is time for one more, and for no rest."""
    clock = HandClock()

    class Lost(Listening):
        async def beat(self, worker_id: int, **said: Any) -> Orders:
            clock.now += took_s
            raise TimeoutError

    heart = Heartbeat(Lost(), 7, Holdings(), lambda orders: None, every_s=10.0, clock=clock)  # type: ignore[arg-type]
    assert await heart.beat() is None
    resting = asyncio.create_task(heart._rest())
    await asyncio.sleep(0)
    assert resting.done() is not rests
    resting.cancel()


async def test_it_stops_when_the_session_is_over() -> None:
    listening = Listening()
    listening.answers = [Orders(alive=False)]
    heart, brought = heart_of(listening, every_s=0.001)
    async with asyncio.timeout(60):
        await heart.beat_forever()
    assert brought == [Orders(alive=False)]
