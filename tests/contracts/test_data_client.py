"""One conformance suite for whoever asks ClickHouse: the embedded engine, a server over HTTP, and the local client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from aaiclick.data.clients import opening
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.local import LocalClient
from aaiclick.data.gateway import Serving, sending, serve_directory
from aaiclick.errors import DataRefused, DataUnreachable

KINDS = ["embedded", "server", "local"]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    found = serve_directory(tmp_path_factory.mktemp("contract") / "data")
    assert found is not None
    yield found
    found.close()


@pytest.fixture(params=KINDS)
async def client(request: pytest.FixtureRequest, serving: Serving) -> AsyncIterator[DataClient]:
    made: DataClient
    if request.param == "embedded":
        made = opening._embedded(serving.engine.directory, serving.engine.query_settings)
    elif request.param == "server":
        made = opening._borrow(serving.endpoint)
    else:
        made = LocalClient(lambda: (opening._borrow(serving.endpoint), lambda: None))
        made.open()
    yield made
    await made.close()


@pytest.fixture
async def table(client: DataClient) -> AsyncIterator[str]:
    await client.command(
        "CREATE TABLE `odd.na-me` (a Int64, `b``c` Nullable(String)) ENGINE = MergeTree ORDER BY tuple()"
        " SETTINGS non_replicated_deduplication_window = 100"
    )
    yield "odd.na-me"
    await client.command("DROP TABLE `odd.na-me` SYNC")


def some(*numbers: int) -> pa.Table:
    return pa.table({"a": list(numbers), "b`c": [None if number % 2 else str(number) for number in numbers]})


async def test_what_is_made_is_looked_at_with_the_same_call(client: DataClient) -> None:
    make = "CREATE TABLE made ENGINE = MergeTree ORDER BY tuple() AS SELECT toInt64(number) AS n FROM numbers(3)"
    found = await client.make(make, "SELECT n FROM made ORDER BY n", {"max_threads": 1})
    assert list(found.names) == ["n"]
    assert list(found.columns[0]) == [0, 1, 2]
    with pytest.raises(DataRefused, match="already exists"):
        await client.make(make, "SELECT 1")
    with pytest.raises(DataRefused):
        await client.make("DROP TABLE made SYNC", "SELECT n FROM made")  # the first half is done


async def test_rows_are_python_values_column_by_column(client: DataClient) -> None:
    found = await client.rows(
        "SELECT toInt64(1) AS a, 'é' AS b, NULL AS c, toDecimal64('1.50', 2) AS d, true AS e, [1, 2] AS f,"
        " toDateTime64('2024-02-29 01:02:03.5', 3, 'UTC') AS g"
        " UNION ALL SELECT 2, '', NULL, 2, false, [], now64(3, 'UTC')"
    )
    assert list(found.names) == list("abcdefg")
    assert [kind.partition("(")[0] for kind in found.types] == [
        "Int64",
        "String",
        "Nullable",
        "Decimal",
        "Bool",
        "Array",
        "DateTime64",
    ]
    moment = datetime(2024, 2, 29, 1, 2, 3, 500_000, tzinfo=UTC)
    rows = sorted(zip(*found.columns, strict=True))
    assert rows[0][:1] + rows[0][2:] == (1, None, Decimal("1.50"), True, [1, 2], moment)


async def test_times_are_with_or_without_a_zone_as_their_types_are(client: DataClient) -> None:
    query = (
        "SELECT toDateTime64('2024-02-29 01:02:03.5', 6) AS n, toDateTime('2024-02-29 01:02:03') AS s,"
        " toDateTime('2024-02-29 01:02:03', 'Asia/Tokyo') AS z, [toDateTime64('2024-02-29 01:02:03.5', 3, 'UTC')] AS u,"
        " toDateTime64('2024-02-29 01:02:03.5', 9) AS f, timezone() AS zone"
    )
    whole = datetime(2024, 2, 29, 1, 2, 3)  # noqa: DTZ001
    half = whole.replace(microsecond=500_000)
    tokyo = whole.replace(tzinfo=ZoneInfo("Asia/Tokyo"))
    found = await client.rows(query)
    assert [column[0] for column in found.columns] == [half, whole, tokyo, [half.replace(tzinfo=UTC)], half, "UTC"]
    assert list(found.types)[:3] == ["DateTime64(6)", "DateTime", "DateTime('Asia/Tokyo')"]
    table = await client.arrow(query)
    batches = [batch async for batch in client.batches(query)]
    for schema in (table.schema, batches[0].schema):
        assert schema.types[:3] == [pa.timestamp("us"), pa.timestamp("s"), pa.timestamp("s", "Asia/Tokyo")]
    assert table.to_pylist()[0]["z"] == tokyo


async def test_no_rows_have_columns_too(client: DataClient) -> None:
    found = await client.rows("SELECT 1 AS a, 'x' AS b WHERE 0")
    assert (list(found.names), [list(column) for column in found.columns]) == (["a", "b"], [[], []])
    assert (await client.arrow("SELECT 1 AS a WHERE 0")).num_rows == 0


async def test_rows_may_be_asked_for_without_awaiting(client: DataClient) -> None:
    assert list(client.rows_now("SELECT number FROM numbers(3)").columns[0]) == [0, 1, 2]


async def test_what_is_inserted_is_there(client: DataClient, table: str) -> None:
    assert await client.insert(table, some(1, 2, 3)) == 3
    found = await client.arrow(f"SELECT * FROM `{table}` ORDER BY a")
    assert found.column_names == ["a", "b`c"]
    assert found.to_pydict() == {"a": [1, 2, 3], "b`c": [None, "2", None]}


async def test_the_same_rows_may_be_inserted_again_but_not_with_the_same_token(client: DataClient, table: str) -> None:
    for _ in range(2):
        await client.insert(table, some(1))
        await client.insert(table, some(2), token="once")
    assert sorted((await client.rows(f"SELECT a FROM `{table}`")).columns[0]) == [1, 1, 2]


async def test_an_insert_that_does_not_fit_adds_nothing(client: DataClient, table: str) -> None:
    with pytest.raises(DataRefused):
        await client.insert(table, pa.table({"a": [1], "unknown": [2]}))
    with pytest.raises(DataRefused):
        await client.insert(table, pa.table({"a": ["no number"], "b`c": ["x"]}))
    assert list((await client.rows(f"SELECT count() FROM `{table}`")).columns[0]) == [0]


async def test_settings_hold_for_one_statement(client: DataClient) -> None:
    asks = "SELECT getSetting('max_threads')"
    assert list((await client.rows(asks, {"max_threads": 3})).columns[0]) == [3]
    assert list((await client.rows(asks)).columns[0]) != [3]
    assert list((await client.rows("SELECT getSetting('join_use_nulls')")).columns[0]) in ([1], [True])


async def test_a_statement_may_be_long(client: DataClient) -> None:
    text = "x" * 1_000_000
    assert list((await client.rows(f"SELECT length('{text}')")).columns[0]) == [1_000_000]


async def test_a_refusal_tells_the_code_and_the_cause(client: DataClient) -> None:
    for ask in (client.rows, client.command, client.arrow):
        with pytest.raises(DataRefused, match=r"code 47.*no_such_column") as refused:
            await ask("SELECT no_such_column")
        assert refused.value.facts["code"] == 47
    with pytest.raises(DataRefused, match="code 62"):
        client.rows_now("SELEC 1")


async def test_after_a_failure_answers_are_right_again(client: DataClient) -> None:
    for _ in range(3):
        with pytest.raises(DataRefused, match="code 395"):
            await client.rows("SELECT throwIf(number = 300000, 'mine') FROM numbers(1000000)")
        assert list((await client.rows("SELECT 'right' AS a")).columns[0]) == ["right"]


async def test_batches_come_piece_by_piece(client: DataClient) -> None:
    total, pieces = 0, 0
    async for batch in client.batches("SELECT number FROM numbers(1000000)", {"max_block_size": 50_000}):
        total += batch.num_rows
        pieces += 1
    assert total == 1_000_000
    assert pieces > 1


async def test_batches_may_be_left_early(client: DataClient) -> None:
    batches = client.batches("SELECT number FROM numbers(20000000)")
    async for batch in batches:
        assert batch.num_rows
        break
    await batches.aclose()  # type: ignore[attr-defined]
    assert list((await client.rows("SELECT 1")).columns[0]) == [1]


async def test_batches_fail_as_rows_do(client: DataClient) -> None:
    with pytest.raises(DataRefused, match="code 395"):
        async for _ in client.batches("SELECT throwIf(number = 3000000, 'mine') FROM numbers(10000000)"):
            pass
    with pytest.raises(DataRefused):
        async for _ in client.batches("SELEC 1"):
            pass


async def test_what_fails_after_its_first_rows_is_refused_too(
    client: DataClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy machine, where rows are sent before the error is there."""
    monkeypatch.setattr(sending, "BUFFER_BYTES", 1)
    query, settings = "SELECT number, throwIf(number = 3000000, 'mine') FROM numbers(10000000)", {"max_threads": 1}
    with pytest.raises(DataRefused, match=r"code 395.*mine"):
        async for _ in client.batches(query, settings):
            pass
    for file_format in ("CSV", "ArrowStream"):
        with pytest.raises(DataRefused, match=r"code 395.*mine"):
            await client.save(query, file_format, str(tmp_path / "numbers"), settings)
    assert os.listdir(tmp_path) == []
    assert list((await client.rows("SELECT 1")).columns[0]) == [1]


async def test_an_answer_becomes_a_file(client: DataClient, tmp_path: Path) -> None:
    path = str(tmp_path / "numbers")
    assert await client.save("SELECT number FROM numbers(3)", "TSV", path, {"max_threads": 1}) == 6
    with pytest.raises(FileExistsError):
        await client.save("SELECT 1", "TSV", path)
    with pytest.raises(DataRefused):
        await client.save("SELEC 1", "TSV", str(tmp_path / "other"))
    assert os.listdir(tmp_path) == ["numbers"]


async def test_several_statements_run_at_once_and_the_loop_goes_on(client: DataClient) -> None:
    waits = [asyncio.ensure_future(client.rows(f"SELECT {number}, sleep(0.3)")) for number in range(4)]
    turns = 0
    while not all(wait.done() for wait in waits):
        await asyncio.sleep(0.01)
        turns += 1
    assert [(await wait).columns[0][0] for wait in waits] == [0, 1, 2, 3]
    assert turns > 3


async def test_who_no_longer_waits_disturbs_nobody(client: DataClient) -> None:
    left = asyncio.ensure_future(client.rows("SELECT sleep(0.2)"))
    await asyncio.sleep(0.05)
    left.cancel()
    found = await asyncio.gather(*(client.rows(f"SELECT {number}") for number in range(20)))
    assert [rows.columns[0][0] for rows in found] == list(range(20))


async def test_a_closed_client_says_so(client: DataClient) -> None:
    await client.rows("SELECT 1")
    await client.close()
    await client.close()
    with pytest.raises(DataUnreachable, match="closed"):
        await client.rows("SELECT 1")
    with pytest.raises(DataUnreachable, match="closed"):
        client.rows_now("SELECT 1")
