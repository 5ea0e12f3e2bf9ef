"""Clients that are lent: reused after success, thrown away after trouble."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from aaiclick.data.clients import opening
from aaiclick.data.clients.pool import AT_ONCE, PooledClient, always, once_clean
from aaiclick.data.gateway import serve_directory
from aaiclick.data.gateway.serving import Serving
from aaiclick.errors import DataRefused, DataUnreachable


class Counted:
    """Stands where clickhouse-connect's client stands; it counts itself."""

    made = 0
    closed = 0

    def __init__(self) -> None:
        type(self).made += 1

    def set_client_setting(self, key: str, value: Any) -> None:
        assert value.startswith("aaiclick-")

    def command(self, sql: str, settings: Any = None) -> None:
        if sql == "fail":
            raise RuntimeError("Code: 1. DB::Exception: failed")

    def close(self) -> None:
        type(self).closed += 1


def pool(keep_after_error: bool) -> tuple[PooledClient, type[Counted]]:
    kind = type("Counted", (Counted,), {})
    return PooledClient(kind, keep_after_error=lambda client: keep_after_error), kind


async def test_a_client_is_used_again() -> None:
    client, kind = pool(True)
    for _ in range(5):
        await client.command("fine")
    assert (kind.made, kind.closed) == (1, 0)
    await client.close()
    assert kind.closed == 1


@pytest.mark.parametrize(("keep", "made"), [(True, 1), (False, 2)])
async def test_after_an_error_a_client_is_used_again_where_that_is_said(keep: bool, made: int) -> None:
    client, kind = pool(keep)
    with pytest.raises(Exception, match="failed"):
        await client.command("fail")
    await client.command("fine")
    assert kind.made == made
    await client.close()
    assert kind.closed == made


FOREVER = "SELECT sum(sleepEachRow(0.000001)) FROM numbers(100000000000000)"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    found = serve_directory(tmp_path_factory.mktemp("pool") / "data")
    assert found is not None
    yield found
    found.close()


@pytest.fixture(params=["by itself", "over the gateway"])
async def real(serving: Serving, request: pytest.FixtureRequest) -> AsyncIterator[PooledClient]:
    """A client of the engine of this process."""
    over_gateway = request.param == "over the gateway"
    client = opening._borrow(serving.endpoint) if over_gateway else opening._embedded(serving.engine.directory, {})
    yield client
    await client.close()


def running(serving: Serving) -> list[str]:
    """The statements that run, but for this one."""
    sql = "SELECT query FROM system.processes WHERE query NOT LIKE '%processes%'"
    with serving.engine.connection() as connection:
        found = connection.query(sql, "TabSeparated")
    return str(found).splitlines()


@pytest.mark.parametrize("verb", ["rows", "arrow", "command"])
async def test_what_is_cancelled_ends_where_it_runs(real: PooledClient, serving: Serving, verb: str) -> None:
    sql = f"CREATE TABLE cancelled ENGINE = MergeTree ORDER BY () AS {FOREVER}" if verb == "command" else FOREVER
    asking = asyncio.ensure_future(getattr(real, verb)(sql))
    while not any("sleepEachRow" in sql for sql in running(serving)):  # noqa: ASYNC110  # ClickHouse tells nobody
        await asyncio.sleep(0.001)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert running(serving) == []
    assert (await real.rows("SELECT 1")).columns == [[1]]
    assert (await real.rows("EXISTS TABLE cancelled")).columns == [[0]]


FAILS_LATE = "SELECT number, throwIf(number = 50000, 'late') FROM numbers(60000) SETTINGS max_block_size = 1000"


@pytest.mark.parametrize("verb", ["rows", "arrow", "command"])
@pytest.mark.parametrize("sql", [FAILS_LATE, "SELECT nothing", "SELEC"])
async def test_an_embedded_client_goes_on_after_an_error_without_its_rows(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, verb: str, sql: str
) -> None:
    """Pitfall T30: the rows of the query that failed are in front of the first answer after it."""
    client, made = opening._embedded(serving.engine.directory, {}), list[Any]()
    connect = client._connect

    def counted() -> Any:
        made.append(connect())
        return made[-1]

    monkeypatch.setattr(client, "_connect", counted)
    for _ in range(3):
        with pytest.raises(DataRefused):
            await getattr(client, verb)(sql)
        assert (await client.rows("SELECT 7 AS a, 'b' AS b")).columns == [[7], ["b"]]
        assert (await client.arrow("SELECT 8 AS a")).to_pydict() == {"a": [8]}
    assert len(made) == 1
    await client.close()


async def test_a_client_that_does_not_answer_any_more_is_thrown_away(serving: Serving) -> None:
    client = opening._embedded(serving.engine.directory, {})
    await client.command("SELECT 1")
    lent = client._idle[0].client
    assert once_clean(lent)
    lent.close()
    assert not once_clean(lent)
    with pytest.raises(DataRefused, match="closed"):
        await client.command("SELECT 1")
    assert client._idle == []
    assert (await client.rows("SELECT 1")).columns == [[1]]
    await client.close()


async def test_pieces_that_nobody_takes_any_more_are_not_made(real: PooledClient, serving: Serving) -> None:
    waiting = asyncio.ensure_future(anext(real.batches(FOREVER)))
    while not any("sleepEachRow" in sql for sql in running(serving)):  # noqa: ASYNC110  # ClickHouse tells nobody
        await asyncio.sleep(0.001)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert running(serving) == []
    assert (await real.rows("SELECT 1")).columns == [[1]]


async def test_a_call_that_is_cancelled_before_it_is_sent_is_not_sent() -> None:
    connecting, go_on, sent = threading.Event(), threading.Event(), []

    class Slow(Counted):
        def __init__(self) -> None:
            super().__init__()
            connecting.set()
            go_on.wait(30)

        def command(self, sql: str, settings: Any = None) -> None:
            sent.append(sql)

    client = PooledClient(Slow, keep_after_error=always)  # type: ignore[arg-type]
    asking = asyncio.ensure_future(client.command("late"))
    await asyncio.to_thread(connecting.wait, 30)
    asking.cancel()
    await asyncio.sleep(0)
    threading.Timer(0.1, go_on.set).start()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert sent == []
    await client.close()


async def test_only_so_many_statements_run_at_once() -> None:
    running, most, lock = 0, 0, threading.Lock()
    go_on = threading.Event()

    class Waiting(Counted):
        def command(self, sql: str, settings: Any = None) -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
                if running == AT_ONCE:
                    go_on.set()
            go_on.wait(30)
            with lock:
                running -= 1

    client = PooledClient(Waiting, keep_after_error=always)  # type: ignore[arg-type]
    await asyncio.gather(*(client.command("wait") for _ in range(2 * AT_ONCE)))
    assert most == AT_ONCE
    await client.close()


async def test_closing_waits_for_what_is_under_way() -> None:
    started, go_on = threading.Event(), threading.Event()

    class Waiting(Counted):
        def command(self, sql: str, settings: Any = None) -> None:
            started.set()
            go_on.wait(30)

    client = PooledClient(Waiting, keep_after_error=always)  # type: ignore[arg-type]
    asked = asyncio.ensure_future(client.command("wait"))
    await asyncio.to_thread(started.wait, 30)
    closing = asyncio.ensure_future(client.close())
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(asked, closing)
    assert Waiting.closed == 1
    with pytest.raises(DataUnreachable, match="the client is closed"):
        await client.command("late")
