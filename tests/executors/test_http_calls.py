"""One request over one connection: how the answer ends, and what breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from aaiclick.errors import InputError
from aaiclick.executors.http_calls import BrokenAnswer, Request, Response, call, check_header

Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@asynccontextmanager
async def answering(*pieces: bytes, closes: bool = True) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers with these bytes, however they are asked for."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if not closes:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


async def got(url: str, method: str = "GET", body: bytes = b"", **headers: str) -> Response:
    return await call(Request(method, url, headers, body), timeout_s=60, bytes_max=1000)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (OK + b"Content-Length: 5\r\n\r\nhe", b"llo"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", OK, b"Content-Length: 5\r\n\r\nhello and more"),
    ],
)
async def test_the_body_ends_where_its_length_says(pieces: tuple[bytes, ...]) -> None:
    async with answering(*pieces, closes=False) as (url, _):
        answer = await got(url)
    assert (answer.status, answer.text) == (200, "hello")


async def test_without_a_length_it_ends_with_the_connection() -> None:
    async with answering(OK + b"X: 1\r\n\r\nhel", b"lo") as (url, heads):
        answer = await got(f"{url}/a?b", "POST", b"", Accept="text/x")
    assert (answer.text, answer.headers["X"]) == ("hello", "1")
    assert heads[0].startswith(b"POST /a?b HTTP/1.1\r\nAccept: text/x\r\nHost: 127.0.0.1:")
    assert b"\r\nContent-Length: 0\r\n" in heads[0]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        OK + b"Content-Length: 5\r\n\r\nhel",
        OK + b"Content-Length: 1001\r\n\r\n",
        OK + b"\r\n" + b"x" * 1001,
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n",
        OK + b"X: " + b"x" * 70_000,
    ],
)
async def test_what_is_no_whole_answer_breaks_off(said: bytes) -> None:
    async with answering(said) as (url, _):
        with pytest.raises(BrokenAnswer):
            await got(url)


async def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    async with answering(closes=False) as (url, _):
        with pytest.raises(TimeoutError):
            await call(Request("GET", url, {}), timeout_s=0.05, bytes_max=1)


async def test_nobody_there() -> None:
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(ConnectionError):
        await got(f"http://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("name", "value"),
    [("X\r\nY", "1"), ("X", "1\r\nY: 2"), ("", "1"), ("X Y", "1"), ("X", 1), ("Content-Length", "1"), ("größe", "1")],
)
def test_headers_that_could_begin_another_are_refused(name: str, value: object) -> None:
    with pytest.raises(InputError):
        check_header(name, value)
