"""How the server ends. Its life as a process is told in tests/cli/admin/test_server.py."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from http import HTTPStatus

import httpx
import pytest

from aaiclick.orchestration.access.audit import list_audit
from aaiclick.server.serving import serve
from aaiclick.server.transport.addresses import listen
from aaiclick.server.transport.connection_limits import HEAD_BYTES_MAX
from aaiclick.server.transport.request_heads import PATH_BYTES_MAX


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


MALFORMED = {
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n": 400,
    b"GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
    b"GET / HTTP/1.1\nHost: localhost\n\n": 400,
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0": 400,
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * HEAD_BYTES_MAX + b"\r\n\r\n": 431,
    b"GET /" + b"x" * PATH_BYTES_MAX + b" HTTP/1.1\r\nHost: localhost\r\n\r\n": 422,
}


async def test_what_is_no_request_is_counted_among_the_refusals() -> None:
    """Before it is one, nobody has said who they are."""
    told: asyncio.Queue[str] = asyncio.Queue()
    given = listen("127.0.0.1", 0)
    port = given.getsockname()[1]
    async with asyncio.timeout(60):
        serving = asyncio.create_task(serve("nowhere.invalid", 1, told=told.put_nowait, given=given))
        await told.get()
        for sent, status in MALFORMED.items():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert (await reader.readline()).split()[1] == b"%d" % status, sent[:60]
            writer.close()
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
    found = {(each.actor, each.target, each.outcome) for each in await list_audit() if each.verb == "refused"}
    assert found == {
        ("nobody", "400 Bad Request", "4 times"),
        ("nobody", "431 Request Header Fields Too Large", "1 times"),
        ("nobody", f"422 {HTTPStatus(422).phrase}", "1 times"),
    }
