"""Where there is no descriptor left."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from aaiclick.server import listening
from aaiclick.server.listening import Listener, ScarceOnce


class Answering(asyncio.Protocol):
    """Says one word."""

    def connection_made(self, transport: Any) -> None:
        transport.write(b"hi")
        transport.close()


def all_that_are_left() -> Iterator[int]:
    """Descriptors, until there are none."""
    with suppress(OSError):
        while True:
            yield os.dup(0)


async def test_without_descriptors_it_rests_says_so_once_and_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(ScarceOnce())
    with socket.create_server(("127.0.0.1", 0)) as first:
        taken = Listener.of(first)
    tried, tries = asyncio.Event(), 0
    accept = socket.socket.accept

    def counted(self: socket.socket) -> Any:
        nonlocal tries
        tries += 1
        if tries == 3:
            tried.set()
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", counted)
    server = await loop.create_server(Answering, sock=taken, backlog=2048)
    waiting = socket.socket()
    waiting.setblocking(False)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with caplog.at_level(logging.WARNING):
        resource.setrlimit(resource.RLIMIT_NOFILE, (waiting.fileno() + 50, hard))
        filling = list(all_that_are_left())
        try:
            await loop.sock_connect(waiting, taken.getsockname())
            await tried.wait()
        finally:
            for each in filling:
                os.close(each)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert await loop.sock_recv(waiting, 10) == b"hi"
    assert tries <= 5  # each second once, not two thousand times
    assert [record.getMessage() for record in caplog.records] == [
        "no new connections for now: Too many open files; it is tried again every second (1 times so far)"
    ]
    waiting.close()
    server.close()


async def test_it_is_said_again_after_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "SAID_EVERY_S", 0.0)
    hears, loop = ScarceOnce(), asyncio.get_running_loop()
    for _ in range(2):
        hears(
            loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many open files")}
        )
    assert "(2 times so far)" in caplog.text


async def test_whatever_else_goes_wrong_is_told_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    ScarceOnce()(asyncio.get_running_loop(), {"message": "something else", "exception": OSError(24, "no")})
    assert "something else" in caplog.text
