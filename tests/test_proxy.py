"""The way to a server that stories cut, slow down, or make lose one direction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.proxy import Proxy

PATIENCE_S = 30.0
BRIEF_S = 0.1


class Echo:
    """A server that says what it hears, and keeps it."""

    heard = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            self.heard += data
            writer.write(data)
        writer.close()


@asynccontextmanager
async def through() -> AsyncIterator[tuple[Echo, Proxy, asyncio.StreamReader, asyncio.StreamWriter]]:
    """An echo, the proxy before it, and a connection by way of that."""
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    proxy = Proxy("127.0.0.1", server.sockets[0].getsockname()[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", await proxy.open())
    async with asyncio.timeout(PATIENCE_S):
        yield echo, proxy, reader, writer
    writer.close()
    await proxy.close()
    server.close()


async def test_what_is_lost_on_its_way_up_is_never_heard() -> None:
    async with through() as (echo, proxy, reader, writer):
        proxy.lost = frozenset({"up"})
        writer.write(b"lost")
        while not proxy.messages:  # noqa: ASYNC110 (there is no event to wait for)
            await asyncio.sleep(0.01)
        proxy.lost = frozenset()
        writer.write(b"found")
        assert await reader.readexactly(5) == b"found"
        assert echo.heard == b"found"


async def test_what_is_lost_on_its_way_down_was_heard() -> None:
    async with through() as (echo, proxy, reader, writer):
        proxy.lost = frozenset({"down"})
        writer.write(b"lost")
        while echo.heard != b"lost":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(BRIEF_S)
        proxy.lost = frozenset()
        writer.write(b"found")
        assert await reader.readexactly(5) == b"found"
        assert echo.heard == b"lostfound"


async def test_a_delay_is_taken_in_each_direction() -> None:
    async with through() as (_, proxy, reader, writer):
        proxy.delay_s = BRIEF_S
        began = time.monotonic()
        writer.write(b"slow")
        assert await reader.readexactly(4) == b"slow"
        assert time.monotonic() - began >= 2 * BRIEF_S


async def test_what_trickles_arrives_whole_and_in_pieces() -> None:
    async with through() as (_, proxy, reader, writer):
        proxy.bytes_per_s = 2_000
        sent = bytes(range(250))
        writer.write(sent)
        first = await reader.read(1000)
        assert len(first) < len(sent)
        assert first + await reader.readexactly(len(sent) - len(first)) == sent
