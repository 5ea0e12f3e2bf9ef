"""One connection: whatever a server or a proxy answers is understood, or it is clear that it was not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aaiclick.orchestration.coordinator.http.connection import Answer, Connection, Lost, NoConnection
from aaiclick.server_address import Address

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nhi"


@asynccontextmanager
async def answering(*answers: bytes, then_close: bool = False) -> AsyncIterator[tuple[Connection, list[bytes]]]:
    """A connection to a peer that gives these answers, one to each call."""
    calls: list[bytes] = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            calls.append(head + await reader.readexactly(length))
            writer.write(answer)
            await writer.drain()
        if not then_close:
            await ended.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connection = await Connection.open(Address.of(f"http://127.0.0.1:{port}"), None)
    try:
        async with asyncio.timeout(30):
            yield connection, calls
    finally:
        connection.close()
        ended.set()
        server.close()


async def post(connection: Connection, body: bytes = b"") -> Answer:
    return await connection.send("POST", "/x", b"host: here\r\n", body)


async def test_calls_follow_each_other_on_one_connection() -> None:
    async with answering(PLAIN, PLAIN) as (connection, calls):
        assert await post(connection, b"one") == Answer(200, {"content-type": "a/b", "content-length": "2"}, b"hi")
        assert connection.reusable
        assert connection.is_open()
        await post(connection)
    assert calls[0] == b"POST /x HTTP/1.1\r\nhost: here\r\ncontent-length: 3\r\n\r\none"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "body", "reusable"),
    [
        (CHUNKED, 200, b"abc0123456789", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN, 200, b"hi", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
        (PLAIN.replace(b"Content-Type: a/b", b"Connection: close"), 200, b"hi", False),
        (PLAIN.replace(b"HTTP/1.1", b"HTTP/1.0"), 200, b"hi", False),
        (b"HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n", 503, b"", True),
    ],
)
async def test_answers_of_all_forms_are_read(answer: bytes, status: int, body: bytes, reusable: bool) -> None:
    async with answering(answer) as (connection, _):
        found = await post(connection)
        assert (found.status, found.body, connection.reusable) == (status, body, reusable)


async def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n\r\nall of it", then_close=True) as (connection, _):
        assert (await post(connection)).body == b"all of it"
        assert not connection.reusable


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        PLAIN[:-1],
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
async def test_what_is_no_whole_answer_is_lost_and_closes(answer: bytes) -> None:
    async with answering(answer, then_close=True) as (connection, _):
        with pytest.raises(Lost):
            await post(connection)
        assert not connection.is_open()


async def test_a_call_that_is_given_up_closes_its_connection() -> None:
    """Its answer would be taken for that of the next call."""
    async with answering(b"") as (connection, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await post(connection)
        assert not connection.is_open()


async def test_where_nobody_listens_there_is_no_connection() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(NoConnection):
        await Connection.open(Address.of(f"http://127.0.0.1:{port}"), None)
