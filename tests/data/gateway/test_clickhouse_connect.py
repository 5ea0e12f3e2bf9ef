"""clickhouse-connect, the client that everybody uses, against the gateway."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import clickhouse_connect
import pyarrow
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError
from clickhouse_connect.driver.external import ExternalData

from aaiclick.data.gateway import Gateway, sending
from tests.data.gateway.conftest import PASSWORD, USER
from tests.data.gateway.test_exchange import FAILS_MIDWAY


@pytest.fixture(autouse=True)
def _no_noise(caplog: pytest.LogCaptureFixture) -> None:
    """It logs a traceback whenever an answer breaks off."""
    caplog.set_level(logging.CRITICAL, "clickhouse_connect")


@pytest.fixture
def table(client: Any) -> str:
    client.command("CREATE TABLE t (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
    return "t"


def where(gateway: Gateway) -> dict[str, Any]:
    parts = urlsplit(gateway.url)
    return {"host": parts.hostname, "port": parts.port, "username": USER, "password": PASSWORD}


def test_rows_go_in_and_come_out(client: Any, table: str) -> None:
    rows = [[number, f"é{number}"] for number in range(1000)]
    summary = client.insert(table, rows, column_names=["a", "b"])
    assert summary.written_rows == 1000
    assert summary.query_id()
    result = client.query("SELECT * FROM t ORDER BY a")
    assert [list(row) for row in result.result_rows] == rows
    assert result.summary["result_rows"] == "1000"


@pytest.mark.parametrize("compress", [False, "lz4", "zstd", "gzip"])
def test_rows_go_in_packed(gateway: Gateway, client: Any, table: str, compress: str | bool) -> None:
    packing = clickhouse_connect.get_client(**where(gateway), compress=compress)
    packing.insert(table, [[number, "x" * 100] for number in range(50000)], column_names=["a", "b"])
    settings = {"enable_http_compression": 1}
    assert len(packing.query("SELECT a, b FROM t", settings=settings).result_rows) == 50000
    packing.close()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT number FROM numbers(0)", []),
        (
            "SELECT NULL, [1, 2], map('a', 1), (1, 'x'), toDecimal64(1.5, 2)::String",
            [(None, [1, 2], {"a": 1}, (1, "x"), "1.5")],
        ),
        ("SHOW DATABASES LIKE 'system'", [("system",)]),
        ("WITH 1 AS a SELECT a UNION ALL SELECT 2 ORDER BY 1", [(1,), (2,)]),
    ],
)
def test_all_kinds_of_answers_are_understood(client: Any, sql: str, rows: list[Any]) -> None:
    assert list(client.query(sql).result_rows) == rows


def test_the_columns_of_nothing_are_known(client: Any, table: str) -> None:
    assert client.query("SELECT * FROM t LIMIT 0").column_names == ("a", "b")


def test_parameters_are_bound_by_the_engine(client: Any) -> None:
    values = {"a": 5, "b": "it's\n\\ \t'é", "c": [1, 2], "d": "x" * 100_000}
    sql = "SELECT {a:UInt64}, {b:String}, {c:Array(UInt8)}, length({d:String})"
    assert client.query(sql, parameters=values).result_rows == [(5, values["b"], [1, 2], 100_000)]


def test_commands(client: Any, table: str) -> None:
    assert client.command("SELECT 1") == 1
    assert client.command("SELECT a FROM t") == ""
    assert client.command("INSERT INTO t VALUES (1, 'x')").written_rows == 1
    assert client.command("EXISTS TABLE t") == 1
    assert client.ping()


def test_arrow_goes_in_and_comes_out(client: Any, table: str) -> None:
    rows = pyarrow.table({"a": pyarrow.array(range(100_000), pyarrow.uint64()), "b": ["x"] * 100_000})
    assert client.insert_arrow(table, rows).written_rows == 100_000
    assert client.query_arrow("SELECT a, b FROM t ORDER BY a", use_strings=True).to_pydict() == rows.to_pydict()
    with client.query_arrow_stream("SELECT a FROM t") as stream:
        assert sum(batch.num_rows for batch in stream) == 100_000


def test_raw_bytes_go_in_and_come_out(client: Any, table: str) -> None:
    client.raw_insert(table, ["a", "b"], b"1\tx\n", fmt="TabSeparated")
    client.raw_insert(table, ["a", "b"], (b"%d\ty\n" % number for number in range(2, 1000)), fmt="TabSeparated")
    assert client.raw_query("SELECT count() FROM t", fmt="TabSeparated") == b"999\n"
    stream = client.raw_stream("SELECT a FROM t ORDER BY a", fmt="CSV")
    assert stream.read().count(b"\n") == 999


def test_rows_are_streamed(client: Any) -> None:
    with client.query_row_block_stream("SELECT number FROM numbers(500000)") as stream:
        assert sum(map(len, stream)) == 500_000


def test_a_stream_may_be_left_early(client: Any) -> None:
    with client.query_rows_stream("SELECT number FROM numbers(3000000)") as stream:
        assert next(iter(stream)) == (0,)
    assert client.command("SELECT 1") == 1


def test_an_error_has_its_code(client: Any) -> None:
    with pytest.raises(DatabaseError) as refused:
        client.query("SELECT nonsense")
    assert (refused.value.code, refused.value.name) == (47, "UNKNOWN_IDENTIFIER")
    with pytest.raises(DatabaseError) as failed:
        client.query(FAILS_MIDWAY)
    assert failed.value.code == 395
    assert client.query("SELECT 7").result_rows == [(7,)]


@pytest.mark.parametrize("settings", [{}, {"enable_http_compression": 1, "buffer_size": 1}])
def test_an_error_after_the_first_rows_is_understood(client: Any, settings: dict[str, int]) -> None:
    with (
        client.query_rows_stream(FAILS_MIDWAY, settings=settings) as stream,
        pytest.raises(StreamFailureError, match="395"),
    ):
        list(stream)
    assert client.query("SELECT 7").result_rows == [(7,)]


def test_a_wrong_password_is_refused(gateway: Gateway) -> None:
    with pytest.raises(DatabaseError, match="516"):
        clickhouse_connect.get_client(**{**where(gateway), "password": "wrong"})


def test_a_session_remembers_what_a_single_query_does_not(client: Any) -> None:
    client.command("CREATE TEMPORARY TABLE mine (a UInt8)")
    client.insert("mine", [[1], [2]], column_names=["a"])
    threads = "SELECT getSetting('max_threads')"
    before = client.query(threads).result_rows
    assert client.query(threads, settings={"max_threads": 7}).result_rows == [(7,)]
    assert client.query(threads).result_rows == before
    assert client.query("SELECT sum(a) FROM mine").result_rows == [(3,)]


def test_a_query_brings_a_table_along(client: Any) -> None:
    rows = ExternalData(file_name="mine.csv", data=b"1,x\n2,y\n", fmt="CSV", structure=["a UInt8", "b String"])
    assert client.query("SELECT max(a), max(b) FROM mine", external_data=rows).result_rows == [(2, "y")]
    assert client.command("EXISTS TEMPORARY TABLE mine") == 0


def test_a_query_in_a_form(gateway: Gateway) -> None:
    form = clickhouse_connect.get_client(**where(gateway), form_encode_query_params=True)
    assert form.query("SELECT {a:String}", parameters={"a": "it's"}).result_rows == [("it's",)]
    form.close()


def test_threads_have_a_client_each(gateway: Gateway, client: Any, table: str) -> None:
    def work(number: int) -> int:
        mine = clickhouse_connect.get_client(**where(gateway))
        mine.insert(table, [[number, "x"]] * 1000, column_names=["a", "b"])
        found = mine.command(f"SELECT count() FROM t WHERE a = {number}")
        mine.close()
        return int(str(found))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(12))) == [1000] * 12


async def test_eight_at_once_from_an_event_loop(gateway: Gateway, client: Any, table: str) -> None:
    asynchronous = await clickhouse_connect.get_async_client(**where(gateway), autogenerate_session_id=False)
    try:
        found = await asyncio.gather(*(asynchronous.query(f"SELECT {number}, sleep(0.05)") for number in range(8)))
        assert [result.result_rows[0][0] for result in found] == list(range(8))
        inserts = (asynchronous.insert(table, [[number, "x"]], column_names=["a", "b"]) for number in range(8))
        await asyncio.gather(*inserts)
        assert (await asynchronous.query_arrow("SELECT a FROM t ORDER BY a"))["a"].to_pylist() == list(range(8))
        with pytest.raises(DatabaseError, match="395"):
            await asynchronous.query(FAILS_MIDWAY)
        async with await asynchronous.query_rows_stream(FAILS_MIDWAY) as stream:
            with pytest.raises(StreamFailureError, match="395"):
                [row async for row in stream]
    finally:
        await asynchronous.close()


def test_what_was_read_is_told_of_a_streamed_query_too(client: Any) -> None:
    result = client.query("SELECT * FROM system.tables")
    assert int(result.summary["read_rows"]) == len(result.result_rows)
    assert client.query("SELECT 1", settings={"query_id": "mine"}).query_id == "mine"
    assert client.command("SELECT queryID()", settings={"query_id": "mine"}) == "mine"


def test_the_database_of_a_client_may_change_within_its_session(client: Any) -> None:
    client.command("CREATE DATABASE other")
    for name in ("other", None, "other", "system", None):
        client.database = name
        assert client.command("SELECT currentDatabase()") == (name or "default")


def test_with_may_stand_before_insert(client: Any, table: str) -> None:
    client.query("WITH {SELECT:Int32} AS v INSERT INTO t (a) FORMAT CSV\n1\n", parameters={"SELECT": 13})
    client.query("WITH 1 AS v INSERT INTO t (b) FORMAT TabSeparated\nx;\n")
    assert client.command("WITH x AS (SELECT 3 AS a) INSERT INTO t (a) SELECT a FROM x").written_rows == 1
    assert client.query("SELECT a, b FROM t ORDER BY a").result_rows == [(0, "x;"), (1, ""), (3, "")]
    assert client.query("WITH insert AS (SELECT 13 AS n) SELECT * FROM insert").result_rows == [(13,)]


def test_an_error_of_a_slow_query_comes_after_its_first_rows(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "KEEP_S_MAX", 0.05)
    slow = "SELECT sleepEachRow(0.01), throwIf(number = 30) FROM numbers(60)"
    settings = {"max_block_size": 1, "wait_end_of_query": 0}
    with pytest.raises(StreamFailureError, match="throwIf"):
        _ = client.query(slow, settings=settings).result_rows
    with client.query_rows_stream(slow, settings=settings) as stream, pytest.raises(StreamFailureError, match="395"):
        list(stream)
    assert client.command("SELECT 1") == 1


def test_a_session_is_asked_again_while_an_answer_is_left_unread(client: Any) -> None:
    many = "SELECT number, repeat('x', 1000) FROM numbers(1000000)"
    for _ in range(3):
        with client.query_rows_stream(many, settings={"max_block_size": 1000}) as stream:
            assert next(iter(stream))[0] == 0
        assert client.command("SELECT 1") == 1
