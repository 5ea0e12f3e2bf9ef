"""One address is opened once in a process, however many ask; the next one takes the place of an owner that is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import data_context
from aaiclick.data.clients import opening
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.local import LocalClient
from aaiclick.data.clients.opening import close_client, kept_open, open_client
from aaiclick.data.clients.pool import PooledClient
from aaiclick.data.embedded.directory_lock import find_gateway
from aaiclick.data.gateway import serve_directory
from aaiclick.data.gateway.serving import Serving
from tests.support import warm

OWNS_AND_WAITS = """
import sys
from pathlib import Path
from aaiclick.data.gateway import serve_directory

serving = serve_directory(Path(sys.argv[1]), port=0)
print("ready", flush=True)
sys.stdin.readline()
"""


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[DataClient]:
    yield await open_client(url)
    await close_client(url)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"chdb://{tmp_path / 'data'}"


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the engine."""
    process = warm.Popen(
        [sys.executable, "-c", OWNS_AND_WAITS, str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


async def in_a_copy(work: Callable[[], Coroutine[Any, Any, str]]) -> str:
    """What comes of it in a process that is forked here."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, asyncio.run(asyncio.wait_for(work(), 60)).encode())
        finally:
            os.kill(os.getpid(), signal.SIGKILL)  # a thread that hangs would keep it
    os.close(writing)
    try:
        return (await asyncio.to_thread(os.read, reading, 1000)).decode()
    finally:
        os.close(reading)
        await asyncio.to_thread(os.waitpid, pid, 0)


@pytest.mark.parametrize("how", ["by itself", "by another", "over http"])
async def test_a_forked_process_reads_and_writes_and_so_does_its_parent(
    url: str, how: str, request: pytest.FixtureRequest
) -> None:
    """The threads of a client are its parent's, and so are its engine and its connections."""
    if how != "by itself":
        request.getfixturevalue("owner")
    if how == "over http":
        endpoint = find_gateway(Path(url.removeprefix("chdb://")), 10)
        assert endpoint is not None
        url = endpoint.tcp.replace("://", f"://{endpoint.user}:{endpoint.password}@")
    async with opened(url) as client:
        await client.command("CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY ()")

        async def work() -> str:
            await client.command("INSERT INTO t VALUES (1)")
            async with opened(url) as again:
                return str((await again.rows("SELECT count() FROM t")).columns[0][0])

        assert await in_a_copy(work) == "1"
        assert await in_a_copy(work) == "2"
        assert (await client.rows("SELECT count() FROM t")).columns == [[2]]


async def test_an_address_is_opened_once_and_closed_by_the_last(url: str) -> None:
    clients = await asyncio.gather(*(open_client(url) for _ in range(5)))
    assert len({id(client) for client in clients}) == 1
    for _ in range(4):
        await close_client(url)
    assert list((await clients[0].rows("SELECT 1")).columns[0]) == [1]
    await close_client(url)
    assert url not in opening._shared


async def test_who_asks_for_what_is_open_waits_for_no_thread(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await open_client(url)
    with monkeypatch.context() as patched:
        patched.setattr(opening, "asyncio", None)
        assert await open_client(url) is client
        await close_client(url)
    await close_client(url)


async def test_inside_kept_open_the_engine_waits_for_the_next_one(url: str) -> None:
    async with kept_open(), kept_open():
        first = await open_client(url)
        await close_client(url)
        assert await open_client(url) is first
        await close_client(url)
    assert url not in opening._shared


async def test_a_directory_may_be_opened_and_closed_again_and_again(url: str) -> None:
    async def once(number: int) -> list[int]:
        async with data_context(url=url) as context:
            return await (await context.create_object_from_value([number])).data()

    assert [await once(number) for number in range(3)] == [[0], [1], [2]]
    assert await asyncio.gather(*(once(number) for number in range(6))) == [[number] for number in range(6)]


async def test_another_process_serves_its_engine_until_it_is_gone(url: str, owner: subprocess.Popen[str]) -> None:
    async with data_context(url=url) as context:
        given = await context.create_object_from_value([1, 2])
        assert await given.data() == [1, 2]
        owner.kill()
        owner.wait()
        assert await given.data() == [1, 2]
        assert await (await (given * 2)).data() == [2, 4]


async def test_a_server_is_asked_over_http(url: str, tmp_path: Path) -> None:
    serving = serve_directory(tmp_path / "data", port=0)
    assert serving is not None
    endpoint = serving.endpoint
    address = endpoint.tcp.replace("://", f"://{endpoint.user}:{endpoint.password}@")
    try:
        async with data_context(url=address) as context:
            assert isinstance(context.client, PooledClient)
            given = await context.create_object_from_value({"a": [1, None], "b": ["x", "y"]})
            assert await given.where("a = 1").data() == {"a": [1], "b": ["x"]}
            assert await given.join(given.where("a = 1"), on="a", how="left")["b_right"].data() == ["x", None]
            assert await (given["a"] + 1).sum().data() == 2
    finally:
        serving.close()


ASKS_FOREVER = """
import asyncio, sys
from aaiclick.data import data_context

async def main():
    async with data_context(url=sys.argv[1]) as context:
        await context.client.command(sys.argv[2])

asyncio.run(main())
"""
FOREVER = "SELECT sum(sleepEachRow(0.000001)) FROM numbers(100000000000000)"


@pytest.mark.parametrize(("how", "made"), [(signal.SIGINT, ""), (signal.SIGKILL, "CREATE TABLE t ENGINE = Log AS ")])
def test_what_a_process_asked_for_ends_with_it(url: str, tmp_path: Path, how: signal.Signals, made: str) -> None:
    serving = serve_directory(tmp_path / "data")
    assert serving is not None

    def is_running() -> bool:
        with serving.engine.connection() as connection:
            asked = (
                "SELECT count() FROM system.processes WHERE query NOT LIKE '%processes%' AND query LIKE '%sleepEach%'"
            )
            return str(connection.query(asked, "TabSeparated")).strip() != "0"

    command = [sys.executable, "-c", ASKS_FOREVER, url, made + FOREVER]
    process = warm.Popen(command, stderr=subprocess.DEVNULL)
    while not is_running():
        time.sleep(0.01)
    process.send_signal(how)
    process.wait()
    while is_running():
        time.sleep(0.01)
    serving.close()


def test_the_local_client_is_that_of_directories(url: str) -> None:
    client = opening._connect(url)
    assert isinstance(client, LocalClient)
    client.close_now()


def test_who_only_borrows_starts_no_owner_either(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(opening, "_ask_for_owner", lambda: asked.append("please"))
    monkeypatch.setattr(opening, "_started", {})
    opening.start_owner()
    assert (asked, opening._started) == (["please"], {})


def test_an_owner_is_started_for_each_directory_while_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of another directory lives on, and is no use."""
    started: list[mock.Mock] = []

    def start(*_: object, **__: object) -> mock.Mock:
        started.append(mock.Mock(poll=mock.Mock(return_value=None)))
        return started[-1]

    monkeypatch.setattr(opening, "_started", {})
    monkeypatch.setattr(subprocess, "Popen", start)
    for root in ("one", "other", "one", "other"):
        monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / root))
        reset_settings()
        opening.start_owner()
    assert len(started) == 2
    started[1].poll.return_value = 0
    opening.start_owner()
    assert len(started) == 3


def test_who_asks_while_an_owner_is_on_its_way_out_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It still lives when it is asked for, so that no other is started then."""
    asked: list[Serving | None] = []
    monkeypatch.setattr(opening, "STARTING_S_MAX", 10.0)
    monkeypatch.setattr(
        opening, "_ask_for_owner", lambda: asked.append(serve_directory(tmp_path / "data") if asked else None)
    )
    found = opening._asked_for(tmp_path / "data")
    assert len(asked) == 2
    assert asked[1] is not None
    assert found == asked[1].endpoint
    asked[1].close()
