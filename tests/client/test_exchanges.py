"""HTTP/1.1 on a connection."""

from __future__ import annotations

import pytest

from aaiclick.client.exchanges import Exchange
from aaiclick.client.networks import Cut, finished
from tests.client.scripted import ScriptedNetwork, ScriptedWire, answered, streamed


def asked(told: bytes) -> tuple[Exchange, bytes]:
    exchange = Exchange(ScriptedWire(told, ScriptedNetwork()))

    async def work() -> bytes:
        await exchange.send("GET", "/", {"Host": "x"}, b"")
        return await exchange.body()

    return exchange, finished(work())


@pytest.mark.parametrize(
    ("told", "body", "reusable"),
    [
        (answered(b"abc"), b"abc", True),
        (answered(b"abc", "200 OK", "Connection: close"), b"abc", False),
        (answered(b""), b"", True),
        (streamed(b"abc", is_whole=True), b"abc", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + answered(b"abc"), b"abc", True),
        (b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", b"", True),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", b"abc", False),
    ],
)
def test_whole_answers(told: bytes, body: bytes, reusable: bool) -> None:
    exchange, found = asked(told)
    assert (found, exchange.reusable) == (body, reusable)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n",
        streamed(b"abc"),
    ],
)
def test_half_answers_and_none(told: bytes) -> None:
    with pytest.raises(Cut):
        asked(told)
