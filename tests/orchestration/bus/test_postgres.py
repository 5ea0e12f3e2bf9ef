"""LISTEN and NOTIFY: connections that are cut, servers that are away, addresses as SQLAlchemy reads them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.engine import make_url

from aaiclick.orchestration.bus import open_bus, postgres, reconnecting
from aaiclick.orchestration.bus.local import ALL_HINTS, Room
from aaiclick.orchestration.bus.postgres import PostgresBus, connect_arguments
from aaiclick.orchestration.rules.naming.hints import ORDERS, READY
from tests.servers.process import free_port

WAIT_S_MAX = 60.0
SILENCE_S = 0.1

ON_POSTGRES = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)

Opens = Callable[[str], PostgresBus]


@pytest.fixture
async def opened() -> AsyncIterator[Opens]:
    """Makes buses that hear each other through the server only, as if each were in a process of its own."""
    async with AsyncExitStack() as stack:

        def make(url: str) -> PostgresBus:
            bus = open_bus(url)
            assert isinstance(bus, PostgresBus)
            bus._room = Room()
            stack.push_async_callback(bus.close)
            return bus

        yield make


@pytest.fixture
async def server(sql_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the test's own."""
    connection = await asyncpg.connect(**connect_arguments(sql_url))
    yield connection
    await connection.close()


OF_THE_BUS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'aaiclick bus'"


async def count_connections(server: asyncpg.Connection) -> int:
    return int(await server.fetchval(f"SELECT count(*) {OF_THE_BUS}"))


async def until_gone(server: asyncpg.Connection) -> None:
    """A backend takes a moment to end."""
    async with asyncio.timeout(WAIT_S_MAX):
        while await count_connections(server):  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)


@ON_POSTGRES
async def test_it_connects_when_it_is_needed_and_gives_the_connection_back(
    sql_url: str, opened: Opens, server: asyncpg.Connection
) -> None:
    bus = opened(sql_url)
    await bus.flush()
    assert await count_connections(server) == 0
    bus.tell([READY])
    await bus.listen()
    assert await count_connections(server) == 1
    await bus.close()
    await until_gone(server)


@ON_POSTGRES
async def test_messages_are_few_and_merged(sql_url: str, opened: Opens, server: asyncpg.Connection) -> None:
    messages: list[str] = []
    await server.add_listener(postgres.CHANNEL, lambda *facts: messages.append(facts[-1]))
    bus = opened(sql_url)
    for _ in range(500):
        bus.tell([READY])
        bus.tell([ORDERS])
    await bus.flush()
    await server.execute("SELECT 1")
    assert messages == [f"{bus._room.token} orders,ready"]


@ON_POSTGRES
async def test_a_listener_that_was_cut_off_hears_again(
    sql_url: str, opened: Opens, server: asyncpg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    teller, listener = opened(sql_url), opened(sql_url)
    for _ in range(2):
        await listener.listen()
        await server.execute(f"SELECT pg_terminate_backend(pid) {OF_THE_BUS}")
        assert await listener.wait(WAIT_S_MAX) == ALL_HINTS  # something may have been missed
        teller.tell([READY])
        assert await listener.wait(WAIT_S_MAX) == {READY}


@ON_POSTGRES
async def test_what_is_told_to_a_connection_that_was_cut_is_sent_over_the_next(
    sql_url: str, opened: Opens, server: asyncpg.Connection
) -> None:
    teller, listener = opened(sql_url), opened(sql_url)
    teller.tell([READY])
    await teller.flush()
    await server.execute(f"SELECT pg_terminate_backend(pid) {OF_THE_BUS}")
    await listener.listen()
    teller.tell([ORDERS])
    heard: set[str] = set()
    while ORDERS not in heard:
        new = await listener.wait(WAIT_S_MAX)
        assert new
        heard |= new


async def test_a_server_that_is_away_is_said_once_and_raises_nothing(
    opened: Opens, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnecting, "PAUSE_S_MIN", 0.001)
    monkeypatch.setattr(reconnecting, "PAUSE_S_MAX", 0.002)
    tries = count_tries(monkeypatch)
    bus = opened(f"postgresql+asyncpg://me:hunter2@127.0.0.1:{free_port()}/away")
    await bus.listen()
    bus.tell([READY])
    await bus.flush()
    assert await bus.wait(WAIT_S_MAX) == {READY}  # within the process it is heard
    while tries[0] < 5:
        assert await bus.wait(0.01) == frozenset()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "127.0.0.1" in caplog.text
    assert "hunter2" not in caplog.text
    await bus.close()


def count_tries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    tries, connect = [0], postgres._connect

    async def counted(url: str) -> Any:
        tries[0] += 1
        return await connect(url)

    monkeypatch.setattr(postgres, "_connect", counted)
    return tries


@ON_POSTGRES
async def test_a_wrong_password_or_database_is_as_silent(
    sql_url: str, opened: Opens, caplog: pytest.LogCaptureFixture
) -> None:
    bus = opened(sql_url + "_that_never_was")
    await bus.listen()
    bus.tell([READY])
    await bus.flush()
    assert len(caplog.records) == 1


@ON_POSTGRES
async def test_a_server_that_comes_up_later_is_found(sql_url: str, opened: Opens) -> None:
    async with way_to(sql_url, is_open=False) as way:
        listener, teller = opened(way.url), opened(sql_url)
        await listener.listen()
        assert await listener.wait(SILENCE_S) == frozenset()
        way.is_open = True
        assert await listener.wait(WAIT_S_MAX) == ALL_HINTS
        teller.tell([READY])
        assert await listener.wait(WAIT_S_MAX) == {READY}


@ON_POSTGRES
async def test_what_was_told_during_an_outage_is_sent_after_it(sql_url: str, opened: Opens) -> None:
    async with way_to(sql_url, is_open=False) as way:
        teller, listener = opened(way.url), opened(sql_url)
        await listener.listen()
        teller.tell([READY])
        await teller.flush()  # does not wait for a server that is away
        way.is_open = True
        assert await listener.wait(WAIT_S_MAX) == {READY}


@ON_POSTGRES
async def test_a_connection_that_died_in_silence_is_noticed(
    sql_url: str, opened: Opens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PROBE_EVERY_S", 0.05)
    monkeypatch.setattr(postgres, "COMMAND_S_MAX", 0.5)
    async with way_to(sql_url) as way:
        listener = opened(way.url)
        await listener.listen()
        way.swallow()
        assert await listener.wait(WAIT_S_MAX) == ALL_HINTS


class Way:
    """A way to the server that can be blocked."""

    def __init__(self, url: str, *, is_open: bool) -> None:
        self.is_open = is_open
        self.swallows: set[asyncio.StreamWriter] = set()
        self.writers: set[asyncio.StreamWriter] = set()
        self.there = make_url(url)
        self.port = 0

    @property
    def url(self) -> str:
        return self.there.set(host="127.0.0.1", port=self.port).render_as_string(hide_password=False)

    def swallow(self) -> None:
        """What is under way now, and later on these connections, is lost; nobody is told."""
        self.swallows |= self.writers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection(self.there.host, self.there.port)
        self.writers |= {writer, far_writer}
        await asyncio.gather(self.pump(reader, far_writer), self.pump(far_reader, writer))

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while some := await reader.read(65536):
                if writer not in self.swallows:
                    writer.write(some)
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def way_to(url: str, *, is_open: bool = True) -> AsyncIterator[Way]:
    way = Way(url, is_open=is_open)
    server = await asyncio.start_server(way.serve, "127.0.0.1", 0)
    way.port = server.sockets[0].getsockname()[1]
    try:
        yield way
    finally:
        server.close()
        for writer in way.writers:
            writer.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+asyncpg://host/database",
        "postgresql+asyncpg://user@host:5433/database",
        "postgresql+asyncpg://us%40er:p%2Fss%3A%25@host/data%20base",
        "postgresql+asyncpg://user:pa/ss?wo#rd@host/database",
        "postgresql+asyncpg://user:secret@[::1]:5433/database",
        "postgresql+asyncpg://user@/database?host=/var/run/some%20where&port=5433",
        "postgresql+asyncpg://user@/database?host=/var/run",
        "postgresql+asyncpg://user@/database?host=one:5432",
        "postgresql+asyncpg://user@/database?host=one:5432&host=two:5433",
        "postgresql+asyncpg://user@/database?host=one,two&port=5432,5433",
        "postgresql+asyncpg://user@host/database?ssl=require&target_session_attrs=read-write",
    ],
)
def test_an_address_is_read_as_sqlalchemy_reads_it(url: str) -> None:
    _, expected = PGDialect_asyncpg().create_connect_args(make_url(url))
    assert plain(connect_arguments(url)) == plain(expected)


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in arguments.items()}


def test_what_is_sqlalchemys_own_is_left_out() -> None:
    url = "postgresql+asyncpg://host/database?prepared_statement_cache_size=0&command_timeout=3"
    assert connect_arguments(url) == {"host": "host", "database": "database"}
