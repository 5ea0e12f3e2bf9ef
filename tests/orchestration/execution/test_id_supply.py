"""The right to make ids is asked for again in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aaiclick.orchestration.execution import id_supply
from aaiclick.orchestration.execution.id_supply import EVERY_S, keep_ids


class Pausing:
    """A clock whose pauses are over at once, and noted."""

    def __init__(self) -> None:
        self.paused: list[float] = []

    def monotonic(self) -> float:
        return sum(self.paused)

    def wall(self) -> float:
        return sum(self.paused)

    async def sleep(self, seconds: float) -> None:
        self.paused.append(seconds)
        await asyncio.sleep(0)


class Granting:
    """Refuses some times, and ends the test after the last answer."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)

    async def grant_ids(self) -> None:
        if not self.answers:
            raise asyncio.CancelledError
        answer = self.answers.pop(0)
        if answer is not None:
            raise answer


async def kept(*answers: Exception | None) -> list[float]:
    clock, coordinator = Pausing(), Granting(*answers)
    with pytest.raises(asyncio.CancelledError):
        await keep_ids(coordinator, clock)  # type: ignore[arg-type]
    return clock.paused


async def test_it_is_asked_for_well_before_it_ends() -> None:
    assert await kept(None, None) == [EVERY_S] * 3


async def test_while_the_state_is_away_it_is_asked_for_soon_again(caplog: pytest.LogCaptureFixture) -> None:
    first, second, third, fourth = await kept(None, OSError("away"), None)
    assert (first, second, fourth) == (EVERY_S, EVERY_S, EVERY_S)
    assert third < EVERY_S / 5
    assert "getting the right to make ids" in caplog.text


async def test_a_call_that_is_not_answered_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_supply, "ANSWER_S_MAX", 0.001)
    silent = Granting(None)
    asked: list[Any] = []

    async def grant_ids() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise asyncio.CancelledError
        await asyncio.Event().wait()

    silent.grant_ids = grant_ids  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await keep_ids(silent, Pausing())  # type: ignore[arg-type]
    assert len(asked) == 2
