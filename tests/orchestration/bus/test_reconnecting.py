"""What buses over a server share: connecting again, what is told meanwhile, closing whatever the client swallows."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.orchestration.bus import reconnecting
from aaiclick.orchestration.bus.local import ALL_HINTS
from aaiclick.orchestration.bus.reconnecting import ReconnectingBus
from aaiclick.orchestration.rules.naming.hints import ORDERS, READY

WAIT_S_MAX = 60.0


class TryingBus(ReconnectingBus):
    """Its server answers when the test says so."""

    def __init__(self, *, answers: bool) -> None:
        super().__init__("sqlite:///beside", "redis://me:hunter2@nowhere")
        self.answers = answers
        self.tries = 0
        self.sent: list[frozenset[str]] = []
        self.lost = asyncio.Event()

    async def _converse(self) -> None:
        self.tries += 1
        if not self.answers:
            raise ConnectionError("nobody answers")
        while not self._closed:
            self._todo.clear()
            self._recover()
            if words := self._taken():
                self.sent.append(words)
                continue
            try:
                await self._todo.wait()
            except asyncio.CancelledError:  # as some clients do
                continue


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnecting, "PAUSE_S_MIN", 0.001)
    monkeypatch.setattr(reconnecting, "PAUSE_S_MAX", 0.002)


async def test_it_tries_until_somebody_answers_and_then_sends_what_was_told(caplog: pytest.LogCaptureFixture) -> None:
    bus = TryingBus(answers=False)
    await bus.listen()
    bus.tell([READY])
    assert await bus.wait(WAIT_S_MAX) == {READY}
    while bus.tries < 5:  # noqa: ASYNC110 (nobody tells)
        await asyncio.sleep(0)
    assert bus.trouble == "ConnectionError: nobody answers"
    bus.answers = True
    assert await bus.wait(WAIT_S_MAX) == ALL_HINTS  # something may have been missed
    bus.tell([ORDERS])
    await bus.flush()
    assert frozenset().union(*bus.sent) == {READY, ORDERS}
    assert bus.trouble == ""
    assert "hunter2" not in caplog.text
    assert len([each for each in caplog.records if "wake-ups" in each.message]) == 2  # that it fails, that it works
    await bus.close()


async def test_flushing_waits_for_no_server_that_is_away() -> None:
    bus = TryingBus(answers=False)
    bus.tell([READY])
    await bus.flush()
    assert bus.trouble
    await bus.close()


async def test_it_is_closed_although_its_client_swallows_the_cancellation() -> None:
    bus = TryingBus(answers=True)
    await bus.listen()
    await asyncio.wait_for(bus.close(), WAIT_S_MAX)
    assert bus._task is None


async def test_it_is_closed_before_it_was_used() -> None:
    bus = TryingBus(answers=True)
    await bus.close()
    assert bus.tries == 0
