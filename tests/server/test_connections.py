"""Connections of whoever has not said yet who they are."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.http.h11_impl import H11Protocol

from aaiclick.server import connections
from aaiclick.server.connections import HEAD_BYTES_MAX, bounded

BEGIN = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def answers(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once, without a look at the body."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


@pytest.fixture(params=[AutoHTTPProtocol, H11Protocol], ids=["auto", "h11"])
async def port(request: pytest.FixtureRequest) -> AsyncIterator[int]:
    """A server of either kind."""
    config = uvicorn.Config(answers, http=bounded(request.param), lifespan="off", ws="none", log_level="critical")
    server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve([listening]))
    yield listening.getsockname()[1]
    server.should_exit = True
    await serving


class Connection:
    """Says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def says(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hears_hi(self) -> bool:
        return (await self.reader.readuntil(b"\r\n\r\nhi")).startswith(b"HTTP/1.1 200")

    async def hears_the_end(self) -> bytes:
        try:
            return await self.reader.read()
        except ConnectionResetError:  # it was told while we were still talking
            return b""
        finally:
            self.writer.close()


async def test_requests_pass_one_after_the_other(port: int) -> None:
    connection = await Connection.to(port)
    for _ in range(3):
        await connection.says(BEGIN)
        await connection.says(b"X: y\r\n\r\n")
        assert await connection.hears_hi()
    connection.writer.close()


async def test_a_body_that_nobody_reads_is_no_head(port: int) -> None:
    """Whoever is refused before their body was read still hears why."""
    connection = await Connection.to(port)
    size = 4 * HEAD_BYTES_MAX
    await connection.says(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size)
    assert await connection.hears_hi()
    for _ in range(4):
        await connection.says(b"x" * HEAD_BYTES_MAX)
    await connection.says(BEGIN + b"\r\n")
    assert await connection.hears_hi()
    connection.writer.close()


@pytest.mark.parametrize("after", [0, 1], ids=["first", "second"])
async def test_headers_without_end_are_not_kept(port: int, after: int) -> None:
    connection = await Connection.to(port)
    for _ in range(after):
        await connection.says(BEGIN + b"\r\n")
        assert await connection.hears_hi()
    await connection.says(BEGIN + b"X: ")
    hearing = asyncio.create_task(connection.hears_the_end())
    try:
        for _ in range(100):
            await connection.says(b"x" * HEAD_BYTES_MAX)
    except ConnectionError:
        pass  # it does not listen any more
    assert b"200 OK" not in await hearing


@pytest.mark.parametrize("begun", [b"", BEGIN], ids=["silent", "slow"])
async def test_whoever_does_not_begin_is_not_waited_for(
    port: int, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_S_MAX", 0.05)
    connection = await Connection.to(port)
    await connection.says(begun)
    assert await connection.hears_the_end() == b""
