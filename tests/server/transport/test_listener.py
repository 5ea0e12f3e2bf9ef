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

from aaiclick.server.transport.listener import Listener, hear_complaints


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
    loop.set_exception_handler(hear_complaints)
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
    told, ended = [record.getMessage() for record in caplog.records]
    assert told == "accepting connections fails: OSError: Too many open files; trying again every second"
    assert ended.startswith("accepting connections works again")
    waiting.close()
    server.close()


async def test_whatever_else_goes_wrong_is_told_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    hear_complaints(asyncio.get_running_loop(), {"message": "something else", "exception": OSError(24, "no")})
    assert "something else" in caplog.text
