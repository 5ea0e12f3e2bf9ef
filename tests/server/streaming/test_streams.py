"""Answers that stay open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration.access.tokens import create_token, revoke_token
from aaiclick.orchestration.models.token import Token
from aaiclick.server.streaming import streams
from aaiclick.server.streaming.streams import Stream
from tests.server.conftest import Client


class Listener:
    """Somebody who asks, hears, and may leave."""

    def __init__(self, client: Client, token: Token) -> None:
        state = {"token": token}
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": "/x",
            "app": client.server,
            "state": state,
        }
        self.state = client.server.state.streams
        self.heard: list[bytes] = []
        self.ended = False
        self.left = asyncio.Event()
        self.reads, self.has_heard = asyncio.Event(), asyncio.Event()
        self.reads.set()

    def asks_for(self, parts: AsyncGenerator[bytes, None]) -> Stream:
        return Stream(Request(self.scope), parts, media_type="text/plain")

    async def hears(self, stream: Stream) -> list[bytes]:
        await stream(self.scope, self._receive, self._send)
        return self.heard

    async def _receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.ended = message["type"] == "http.response.body" and not message["more_body"]
        if message.get("body"):
            self.heard.append(message["body"])
            self.has_heard.set()
            await self.reads.wait()


@pytest.fixture
async def listener(client: Client) -> Listener:
    return Listener(client, (await create_token("listener")).token)


class Parts:
    """Parts that tell whether they were closed."""

    def __init__(self, *parts: bytes, ends: bool = True) -> None:
        self.parts, self.ends, self.closed = parts, ends, False

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        try:
            for part in self.parts:
                yield part
            if not self.ends:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def test_parts_come_through_and_empty_ones_do_not(listener: Listener) -> None:
    assert await listener.hears(listener.asks_for(Parts(b"one", b"", b"two")())) == [b"one", b"two"]
    assert listener.state.open == 0


async def test_the_end_of_the_server_ends_them(listener: Listener) -> None:
    parts = Parts(b"begin", ends=False)
    hearing = asyncio.create_task(listener.hears(listener.asks_for(parts())))
    await listener.has_heard.wait()
    listener.state.ending.set()
    assert (await hearing, listener.state.open, parts.closed) == ([b"begin"], 0, True)


async def test_they_end_after_a_while(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAM_S_MAX", 0.01)
    parts = Parts(b"begin", ends=False)
    assert await listener.hears(listener.asks_for(parts())) == [b"begin"]
    assert (listener.state.open, parts.closed) == (0, True)


async def test_so_many_and_no_more(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener.state.places, "most", 1)
    first = asyncio.create_task(listener.hears(listener.asks_for(Parts(b"one", ends=False)())))
    await listener.has_heard.wait()
    with pytest.raises(HTTPException, match="which is the limit"):
        await listener.hears(listener.asks_for(Parts()()))
    listener.left.set()
    await first
    listener.left.clear()
    assert await listener.hears(listener.asks_for(Parts(b"two")())) == [b"one", b"two"]


async def test_whoever_leaves_before_anything_was_told_is_not_counted_for_ever(listener: Listener) -> None:
    listener.left.set()
    await listener.hears(listener.asks_for(Parts(b"one")()))
    assert listener.state.open == 0
    listener.asks_for(Parts(b"two")())  # made, and never told
    assert listener.state.open == 0


async def test_whoever_leaves_on_the_way_leaves_nothing_behind(listener: Listener) -> None:
    parts, before = Parts(b"begin", ends=False), asyncio.all_tasks()
    hearing = asyncio.create_task(listener.hears(listener.asks_for(parts())))
    await listener.has_heard.wait()
    listener.left.set()
    await hearing
    assert (listener.state.open, parts.closed) == (0, True)
    assert asyncio.all_tasks() == before


async def test_whoever_does_not_read_is_not_waited_for_for_ever(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAM_S_MAX", 0.01)
    monkeypatch.setattr(streams, "SLOW_S_MAX", 0.01)
    listener.reads.clear()
    parts = Parts(b"begin", b"never read")
    assert await listener.hears(listener.asks_for(parts())) == [b"begin"]
    assert (listener.state.open, parts.closed) == (0, True)


async def test_a_database_that_goes_away_cuts_it_off_and_is_told_in_one_line(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    async def parts(error: Exception) -> AsyncGenerator[bytes, None]:
        yield b"begin"
        raise error

    await listener.hears(listener.asks_for(parts(BackendUnreachable(url="postgresql://h/d", cause="it has gone"))))
    assert [record.getMessage() for record in caplog.records if record.name == "aaiclick.server"] == [
        "GET /x was cut off: Cannot reach the database at postgresql://h/d: it has gone. Check that it runs and that"
        " the address and password are right."
    ]
    assert not listener.ended  # a log that stops here must not look whole
    with pytest.raises(ZeroDivisionError):
        await listener.hears(listener.asks_for(parts(ZeroDivisionError())))
    assert listener.state.open == 0


async def test_a_revoked_token_hears_no_more(listener: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "TOKEN_EVERY_S", 0.01)
    parts = Parts(b"begin", ends=False)
    hearing = asyncio.create_task(listener.hears(listener.asks_for(parts())))
    await asyncio.sleep(0.05)
    assert not hearing.done()  # while it counts, it goes on
    await revoke_token(listener.scope["state"]["token"].id)
    assert (await hearing, listener.state.open, parts.closed) == ([b"begin"], 0, True)


async def test_streams_with_one_token_share_the_look_at_it(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    async def look(token_id: int) -> bool:
        looks.append(token_id)
        await asyncio.sleep(0)
        return token_id != 3

    monkeypatch.setattr(streams, "still_counts", look)
    state, turn = client.server.state.streams, streams.TOKEN_EVERY_S
    assert await asyncio.gather(*(state.still_counts(each, turn) for each in (1, 1, 2, 1, 3))) == [1, 1, 1, 1, 0]
    assert await state.still_counts(1, 1.9 * turn)
    assert looks == [1, 2, 3]
    gone = asyncio.create_task(state.still_counts(1, 2 * turn))
    staying = asyncio.create_task(state.still_counts(1, 2 * turn))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await staying, looks) == (True, [1, 2, 3, 1])
