"""How the server ends. Its life as a process is told in tests/cli/test_server.py."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import httpx
import pytest

from aaiclick.server.addresses import listen
from aaiclick.server.serving import serve


@pytest.fixture(autouse=True)
def hang_ups() -> Iterator[None]:
    """As a terminal has it: no test of ours was begun with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_on_a_socket_that_was_given_it_serves_until_a_signal(number: int) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    given = listen("127.0.0.1", 0)
    async with asyncio.timeout(60):
        serving = asyncio.create_task(serve("nowhere.invalid", 1, told=told.put_nowait, given=given))
        where = await told.get()
        assert where.endswith(f":{given.getsockname()[1]}")
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{where}/readyz")).status_code == 200
        os.kill(os.getpid(), number)
        await serving
    assert given.fileno() == -1
