"""Running a query on a connection, and taking its answer in pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway import queries
from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.http.multipart import ExternalTable
from aaiclick.data.gateway.queries import Counts, GatewayQuery, Outcome, portions, run
from aaiclick.data.gateway.statements import split_insert

MANY = "SELECT number AS a FROM numbers(200000)"


def outcome_of(engine: Engine, sql: str, **more: Any) -> tuple[Outcome, bytes]:
    query = GatewayQuery("id", sql.encode(), **more)
    with engine.connection(reuse=False) as connection, run(query, connection) as outcome:
        return outcome, b"".join(outcome.pieces)


def body_of(engine: Engine, sql: str, **more: Any) -> bytes:
    return outcome_of(engine, sql, **more)[1]


@pytest.mark.parametrize(
    "name",
    [
        *("TabSeparated", "CSVWithNames", "TabSeparatedWithNamesAndTypes", "JSONEachRow", "Native", "RowBinary"),
        *("JSONCompactEachRowWithNamesAndTypes", "JSON", "Values", "CSV"),
    ],
)
@pytest.mark.parametrize("sql", [MANY, "SELECT number AS a FROM numbers(0)"])
def test_a_streamed_answer_is_the_same_document(engine: Engine, name: str, sql: str) -> None:
    streamed = body_of(engine, sql, default_format=name)
    with engine.connection(settings={"max_block_size": "1000000"}) as connection:
        whole = connection.query(sql, name).bytes()
    if name == "JSON":
        streamed, whole = (json.dumps(json.loads(text)["data"]).encode() for text in (streamed, whole))
    if name == "Native":  # its blocks tell how large they are
        assert len(streamed) >= len(whole)
    else:
        assert streamed == whole


def test_an_answer_is_made_while_it_is_taken(engine: Engine) -> None:
    query = GatewayQuery("id", b"SELECT number FROM numbers(100000000000)")
    with engine.connection(reuse=False) as connection, run(query, connection) as outcome:
        assert next(outcome.pieces)
        assert next(outcome.pieces)
    assert body_of(engine, "SELECT 1") == b"1\n"


@pytest.mark.parametrize("name", ["TabSeparated", "CSVWithNames"])
def test_totals_and_extremes_come_last(engine: Engine, name: str) -> None:
    sql = "SELECT number AS a, count() AS n FROM numbers(3) GROUP BY a WITH TOTALS ORDER BY a"
    assert body_of(engine, sql, default_format=name).replace(b",", b"\t").endswith(b"2\t1\n\n0\t3\n")


def test_arrow_is_readable_however_many_blocks_it_had(engine: Engine) -> None:
    streamed = pyarrow.ipc.open_stream(body_of(engine, MANY, default_format="ArrowStream")).read_all()
    whole = pyarrow.ipc.open_file(pyarrow.BufferReader(body_of(engine, MANY, default_format="Arrow"))).read_all()
    assert streamed.equals(whole)
    assert streamed.num_rows == 200000
    empty = pyarrow.ipc.open_stream(body_of(engine, f"{MANY} WHERE 0", default_format="ArrowStream")).read_all()
    assert (empty.num_rows, empty.column_names) == (0, ["a"])


def test_a_dictionary_of_each_block_is_kept(engine: Engine) -> None:
    sql = "SELECT toLowCardinality(toString(intDiv(number, 1000))) AS a FROM numbers(150000)"
    settings = " SETTINGS output_format_arrow_low_cardinality_as_dictionary = 1"
    table = pyarrow.ipc.open_stream(body_of(engine, sql + settings, default_format="ArrowStream")).read_all()
    assert table["a"].to_pylist() == [str(number // 1000) for number in range(150000)]


def test_the_format_of_the_query_wins(engine: Engine) -> None:
    outcome, body = outcome_of(engine, "SELECT 1 AS a FORMAT JSONEachRow", default_format="CSV")
    assert (outcome.format, body) == ("JSONEachRow", b'{"a":1}\n')


@pytest.mark.parametrize("sql", ["SHOW DATABASES", "EXISTS TABLE t", "DESCRIBE TABLE system.one", "EXPLAIN SELECT 1"])
def test_what_does_not_stream_answers_too(engine: Engine, sql: str) -> None:
    outcome, body = outcome_of(engine, sql)
    assert body
    assert outcome.format == "TabSeparated"


def test_what_answers_nothing_has_no_format(engine: Engine) -> None:
    outcome, body = outcome_of(engine, "CREATE TABLE t (a UInt8) ENGINE = Memory")
    assert (outcome.format, body) == (None, b"")


def test_parameters_are_bound(engine: Engine) -> None:
    assert body_of(engine, "SELECT {a:UInt8} + 1, {b:String}", params={"a": "1", "b": "it's"}) == b"2\tit\\'s\n"


def test_bytes_that_are_no_text_reach_the_engine(engine: Engine) -> None:
    query = GatewayQuery("id", b"SELECT hex('\xff')")
    with engine.connection() as connection, run(query, connection) as outcome:
        assert b"".join(outcome.pieces) == b"FF\n"


@pytest.mark.parametrize(
    "sql", ["SELECT 1; SELECT 2", "SHOW TABLES; SELECT 2", "CREATE TABLE t (a Int8) ENGINE = Memory; SELECT 1"]
)
def test_several_statements_are_refused(engine: Engine, sql: str) -> None:
    with pytest.raises((Fault, RuntimeError), match="Multi-statements"):
        outcome_of(engine, sql)


def test_a_semicolon_is_not_a_second_statement(engine: Engine) -> None:
    assert body_of(engine, "SELECT 1;\n") == b"1\n"
    assert body_of(engine, "EXISTS TABLE `a;b`;") == b"0\n"


@pytest.fixture
def table(engine: Engine) -> str:
    body_of(engine, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    return "t"


def insert(engine: Engine, sql: str, data: Iterator[bytes] | list[bytes], **more: Any) -> Outcome:
    return outcome_of(engine, sql, insert=split_insert(sql.encode()), data=data, **more)[0]


def test_an_insert_tells_what_it_wrote(engine: Engine, table: str) -> None:
    outcome = insert(engine, "INSERT INTO t FORMAT CSV", [b"1\n", b"2\n"])
    told = json.loads(outcome.counts.as_json())
    assert (outcome.format, told["written_rows"], told["read_bytes"]) == (None, "2", "4")
    assert body_of(engine, "SELECT sum(a) FROM t") == b"3\n"


def test_an_insert_takes_parameters(engine: Engine, table: str) -> None:
    insert(engine, "INSERT INTO {name:Identifier} FORMAT CSV", [b"1\n"], params={"name": "t"})
    assert body_of(engine, "SELECT count() FROM t") == b"1\n"


def test_an_insert_that_breaks_off_leaves_nothing(engine: Engine, table: str) -> None:
    def breaks_off() -> Iterator[bytes]:
        yield b"1\n" * queries.PORTION_BYTES
        raise ConnectionError

    with pytest.raises(ConnectionError):
        insert(engine, "INSERT INTO t SETTINGS min_insert_block_size_rows = 1000000000 FORMAT CSV", breaks_off())
    assert body_of(engine, "SELECT count() FROM t") == b"0\n"


def test_an_insert_of_what_does_not_fit_is_refused(engine: Engine, table: str) -> None:
    with pytest.raises(RuntimeError, match="Code: 27"):
        insert(engine, "INSERT INTO t FORMAT TSV", [b"1\nx\n"])
    assert body_of(engine, "SELECT count() FROM t") == b"0\n"


def test_a_query_brings_its_tables_along(engine: Engine) -> None:
    tables = [ExternalTable("mine", "x UInt8, y String", "CSV", b"1,a\n2,b\n")]
    with engine.connection(reuse=False) as connection:
        query = GatewayQuery("id", b"SELECT max(x), max(y) FROM mine", tables=tables)
        with run(query, connection) as outcome:
            assert b"".join(outcome.pieces) == b"2\tb\n"
        with pytest.raises(RuntimeError, match="Code: 60"):
            connection.query("SELECT * FROM mine")


def test_the_tables_of_a_query_that_fails_are_dropped_too(engine: Engine) -> None:
    tables = [ExternalTable("mine", "x UInt8", "CSV", b"1\n")]
    with engine.connection(reuse=False) as connection:
        with (
            pytest.raises(RuntimeError, match="Code: 47"),
            run(GatewayQuery("id", b"SELECT no", tables=tables), connection) as told,
        ):
            list(told.pieces)
        with pytest.raises(RuntimeError, match="Code: 60"):
            connection.query("SELECT * FROM mine")


@pytest.mark.parametrize(
    ("query", "spoils"),
    [
        (GatewayQuery("", b"SELECT 1"), False),
        (GatewayQuery("", b"SELECT 1", settings={"max_threads": "1"}), False),
        (GatewayQuery("", b"SET max_threads = 1"), True),
        (GatewayQuery("", b"SELECT 1", tables=[ExternalTable("t", "", "", b"")]), True),
        (GatewayQuery("", b"INSERT", insert=split_insert(b"INSERT INTO t VALUES"), params={"a": "1"}), True),
        (
            GatewayQuery(
                "",
                b"INSERT",
                insert=split_insert(b"INSERT INTO t VALUES"),
                settings={"insert_deduplication_token": "1"},
            ),
            True,
        ),
    ],
)
def test_whose_connection_nobody_else_can_use(query: GatewayQuery, spoils: bool) -> None:
    assert query.spoils_connection is spoils


def test_small_pieces_become_larger_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "PORTION_BYTES", 5)
    assert list(portions([b"ab", b"cd", b"ef", b"", b"g"])) == [b"abcdef", b"g"]


def test_counts_are_told_as_clickhouse_tells_them() -> None:
    told = json.loads(Counts(read_rows=3).as_json())
    assert told["read_rows"] == "3"
    assert set(map(type, told.values())) == {str}


@pytest.mark.parametrize("name", ["Native", "JSON"])
def test_rows_are_counted_over_all_blocks(engine: Engine, name: str) -> None:
    counts = outcome_of(engine, MANY, default_format=name)[0].counts
    assert counts.result_rows == 200000
    assert 65_000 < counts.read_rows <= 200000  # the engine may tell of its last blocks after the answer has ended
    assert counts.read_bytes == 8 * counts.read_rows
