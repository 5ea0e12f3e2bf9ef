"""Answers that stay open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from aaiclick.server import streams
from aaiclick.server.streams import Streams, streaming


@pytest.fixture
async def app() -> Starlette:
    made = Starlette()
    made.state.streams = Streams()
    return made


async def two() -> AsyncIterator[bytes]:
    yield b"one"
    yield b""
    yield b"two"


async def endless() -> AsyncIterator[bytes]:
    yield b"begin"
    await asyncio.Event().wait()


async def test_parts_come_through_and_empty_ones_do_not(app: Starlette) -> None:
    assert [part async for part in streaming(app, two())] == [b"one", b"two"]
    assert app.state.streams.open == 0


async def test_the_end_of_the_server_ends_them(app: Starlette) -> None:
    heard = []
    async for part in streaming(app, endless()):
        heard.append(part)
        app.state.streams.ending.set()
    assert (heard, app.state.streams.open) == ([b"begin"], 0)


async def test_they_end_after_a_while(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAM_S_MAX", 0.01)
    assert [part async for part in streaming(app, endless())] == [b"begin"]
    assert app.state.streams.open == 0


async def test_so_many_and_no_more(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    first = streaming(app, two())
    with pytest.raises(HTTPException, match="open already"):
        streaming(app, two())
    assert [part async for part in first] == [b"one", b"two"]
    assert [part async for part in streaming(app, two())] == [b"one", b"two"]
