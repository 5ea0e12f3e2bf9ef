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

from aaiclick.server.transport import connection_limits
from aaiclick.server.transport.connection_counts import Crowd
from aaiclick.server.transport.connection_limits import HEAD_BYTES_MAX, bounded

BEGIN = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def answers(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once, without a look at the body."""
    while scope["path"] == "/read":
        if not (await receive()).get("more_body"):
            break
    body = b"x" * 20_000_000 if scope["path"] == "/large" else b"hi"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    for begin in range(0, len(body), 100_000):
        rest = len(body) - begin > 100_000
        await send({"type": "http.response.body", "body": body[begin : begin + 100_000], "more_body": rest})


@pytest.fixture
def refused() -> list[int]:
    """What was answered without the application."""
    return []


@pytest.fixture(params=[AutoHTTPProtocol, H11Protocol], ids=["auto", "h11"])
def protocol(request: pytest.FixtureRequest, refused: list[int]) -> Any:
    """Of either kind, for few connections."""
    return bounded(request.param, connections_max=20, refused=refused.append)


@pytest.fixture
def crowd(protocol: Any) -> Crowd:
    """Its connections."""
    found: Crowd = protocol.crowd
    return found


@pytest.fixture
async def port(protocol: Any) -> AsyncIterator[int]:
    """A server."""
    config = uvicorn.Config(answers, http=protocol, lifespan="off", ws="none", log_level="critical")
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
        if self.writer.is_closing():
            raise ConnectionResetError
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


async def test_requests_pass_one_after_the_other(port: int, refused: list[int]) -> None:
    connection = await Connection.to(port)
    for _ in range(3):
        await connection.says(BEGIN)
        await connection.says(b"X: y\r\n\r\n")
        assert await connection.hears_hi()
    connection.writer.close()
    assert refused == []


async def test_whoever_is_answered_early_hears_it_and_then_the_end(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the body is not waited for."""
    monkeypatch.setattr(connection_limits, "LINGER_S", 0.05)
    connection = await Connection.to(port)
    await connection.says(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n")
    heard = await connection.hears_the_end()
    assert b"200 OK" in heard
    assert b"connection: close" in heard.lower()
    assert heard.endswith(b"hi")


async def test_whoever_is_answered_early_and_sends_on_hears_it_too(port: int) -> None:
    """Closed at once, the machine would throw our answer away with what was not read."""
    connection = await Connection.to(port)
    await connection.says(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n")
    for _ in range(4):
        await connection.says(b"x" * HEAD_BYTES_MAX)
    assert (await connection.hears_the_end()).endswith(b"hi")


async def test_what_is_sent_after_an_early_answer_is_bounded(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "LINGER_S", 60.0)
    connection = await Connection.to(port)
    await connection.says(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000000\r\n\r\n")
    said = 0
    try:
        for said in range(1000):  # noqa: B007 (how far it came)
            await connection.says(b"x" * HEAD_BYTES_MAX)
    except ConnectionError:
        pass
    assert said < 999


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
    monkeypatch.setattr(connection_limits, "HEAD_S_MAX", 0.05)
    connection = await Connection.to(port)
    await connection.says(begun)
    assert await connection.hears_the_end() == b""


SMUGGLED = {
    "both": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    "both, in another case": b"TRANSFER-ENCODING: chunked\r\ncontent-length: 0\r\n",
    "two lengths": b"Content-Length: 3\r\nContent-Length: 4\r\n",
    "the same length twice": b"Content-Length: 3\r\nContent-Length: 3\r\n",
    "a list of lengths": b"Content-Length: 3, 3\r\n",
    "a length with a sign": b"Content-Length: +3\r\n",
    "a length below nothing": b"Content-Length: -3\r\n",
    "a length in hexadecimal": b"Content-Length: 0x3\r\n",
    "a length with an underscore": b"Content-Length: 1_0\r\n",
    "a long length": b"Content-Length: " + b"9" * 5000 + b"\r\n",
    "no length": b"Content-Length:\r\n",
    "a folded line": b"X: a\r\n b\r\n",
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n",
    "a folded first line": b" Content-Length: 3\r\n",
    "a blank before the colon": b"Content-Length : 3\r\n",
    "a coding that nobody knows": b"Transfer-Encoding: xchunked\r\n",
    "two codings": b"Transfer-Encoding: gzip, chunked\r\n",
    "two lines of codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "a tab before a coding": b"Transfer-Encoding: \x0bchunked\r\n",
    "no colon": b"X\r\n",
    "no name": b": x\r\n",
    "LF alone": b"X: a\nContent-Length: 3\r\n",
    "CR alone": b"X: a\rContent-Length: 3\r\n",
    "NUL": b"X: a\x00b\r\n",
}


async def test_a_request_that_could_mean_two_things_is_refused(port: int, refused: list[int]) -> None:
    for name, lines in SMUGGLED.items():
        connection = await Connection.to(port)
        await connection.says(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n0\r\n\r\n")
        heard = await connection.hears_the_end()
        assert heard.startswith(b"HTTP/1.1 400 "), name
        assert b"connection: close" in heard, name
        assert heard.count(b"HTTP/1.1 ") == 1, name
        assert b"application/problem+json" in heard, name
    assert refused == [400] * len(SMUGGLED)


async def test_a_body_in_pieces_that_are_none_is_refused_and_told(port: int, refused: list[int]) -> None:
    connection = await Connection.to(port)
    await connection.says(b"POST /read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n")
    assert (await connection.hears_the_end()).startswith(b"HTTP/1.1 400 ")
    assert refused == [400]


async def test_a_head_that_is_too_long_is_refused_and_told(port: int, refused: list[int]) -> None:
    connection = await Connection.to(port)
    await connection.says(BEGIN + b"X: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n")
    assert (await connection.hears_the_end()).startswith(b"HTTP/1.1 431 ")
    assert refused == [431]


async def test_a_first_line_that_is_none(port: int) -> None:
    wrong = (
        b"",
        b"GET /",
        b"GET / HTTP/2.0",
        b"GET  / HTTP/1.1",
        b"get / HTTP/1.1",
        b"GET / HTTP/1.1 x",
        b"\x16\x03\x01",
    )
    for first in wrong:
        connection = await Connection.to(port)
        await connection.says(first + b"\r\nHost: localhost\r\n\r\n")
        assert (await connection.hears_the_end()).startswith(b"HTTP/1.1 400 "), first


async def test_lines_without_cr_are_not_waited_for(port: int) -> None:
    connection = await Connection.to(port)
    await connection.says(b"GET / HTTP/1.1\nHost: localhost\n\n")
    assert (await connection.hears_the_end()).startswith(b"HTTP/1.1 400 ")


async def test_however_it_is_cut_it_is_understood(port: int) -> None:
    connection = await Connection.to(port)
    for byte in BEGIN + b"\r\n":
        await connection.says(bytes([byte]))
        await asyncio.sleep(0)
    assert await connection.hears_hi()
    connection.writer.close()


async def test_a_body_in_pieces_is_taken(port: int) -> None:
    connection = await Connection.to(port)
    await connection.says(BEGIN + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    assert await connection.hears_hi()
    connection.writer.close()


async def test_what_comes_before_the_answer_is_not_taken_for_a_request(port: int) -> None:
    """A second one in the same breath: it was not looked at."""
    connection = await Connection.to(port)
    await connection.says((BEGIN + b"\r\n") * 2)
    heard = await connection.hears_the_end()
    assert heard.count(b"200 OK") <= 1
    assert b"\r\n\r\nhi" in heard or heard == b""


async def test_what_is_hidden_behind_a_body_is_not_taken_for_a_request(port: int) -> None:
    connection = await Connection.to(port)
    whole = b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
    await connection.says(whole + BEGIN + b"X: a\r\n b\r\n\r\n")
    heard = await connection.hears_the_end()
    assert heard.count(b"200 OK") == heard.count(b"hi") <= 1


async def test_a_large_body_in_the_smallest_pieces_is_taken(port: int) -> None:
    connection = await Connection.to(port)
    await connection.says(b"POST /read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    await connection.says(b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n")
    assert await connection.hears_hi()
    await connection.says(BEGIN + b"\r\n")
    assert await connection.hears_hi()
    connection.writer.close()


async def test_an_answer_that_nobody_reads_is_given_up(
    port: int, monkeypatch: pytest.MonkeyPatch, crowd: Crowd
) -> None:
    monkeypatch.setattr(connection_limits, "UNREAD_S_MAX", 0.05)
    connection = await Connection.to(port)
    connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await connection.says(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    gone = asyncio.Event()
    monkeypatch.setattr(crowd, "leave", lambda _: gone.set())
    await gone.wait()
    connection.writer.close()


async def test_strangers_who_say_nothing_keep_nobody_out(port: int, crowd: Crowd) -> None:
    silent = [await Connection.to(port) for _ in range(3 * crowd.most)]
    for _ in range(3):
        guest = await Connection.to(port)
        await guest.says(BEGIN + b"\r\n")
        assert await guest.hears_hi()
        guest.writer.close()
    assert len(crowd.strangers) <= crowd.strangers_most
    ended = await asyncio.gather(*(each.hears_the_end() for each in silent[: 2 * crowd.most]))
    assert ended == [b""] * (2 * crowd.most)  # the first to come were the first to go
    for each in silent:
        each.writer.close()


async def test_strangers_who_trickle_a_body_after_their_answer_keep_nobody_out(port: int, crowd: Crowd) -> None:
    trickling = []
    for _ in range(2 * crowd.most):
        each = await Connection.to(port)
        await each.says(BEGIN + b"Content-Length: 100000\r\n\r\nx")
        trickling.append(each)
    guest = await Connection.to(port)
    await guest.says(BEGIN + b"\r\n")
    assert await guest.hears_hi()
    for each in (guest, *trickling):
        each.writer.close()
