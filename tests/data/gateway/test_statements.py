"""As much of SQL as a gateway must understand."""

from __future__ import annotations

import pytest

from aaiclick.data.gateway.statements import keyword, leaves_traces, name_query, output_format, split_insert


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        (b"select 1", "SELECT"),
        (b" -- why\n/* a * b */ # x\n((SELECT 1))", "SELECT"),
        (b"with 1 as a select a", "WITH"),
        (b"WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "INSERT"),
        (b"WITH 'INSERT INTO t' AS x insert /* now */ into t SELECT x", "INSERT"),
        (b"WITH insert AS (SELECT 13 AS n) SELECT * FROM insert", "WITH"),
        (b"WITH 13 AS insert SELECT insert INTO OUTFILE 'x'", "WITH"),
        (b"WITH (SELECT 1) AS x SELECT ' INSERT INTO '", "WITH"),
        (b"WITH {INSERT:Int32} AS value SELECT value", "WITH"),
        (b"", ""),
        (b"-- select 1", ""),
        (b"/* select 1", ""),
        (b"1", ""),
    ],
)
def test_the_first_word(sql: bytes, word: str) -> None:
    assert keyword(sql) == word


@pytest.mark.parametrize(
    ("sql", "leaves"),
    [
        (b"SELECT 1", False),
        (b"INSERT INTO t VALUES (1)", False),
        (b"CREATE TABLE t (a Int8) ENGINE = Memory", False),
        (b"CREATE TEMPORARY TABLE t (a Int8)", True),
        (b"SET max_threads = 1", True),
        (b"USE other", True),
        (b"nonsense", True),
    ],
)
def test_what_leaves_traces_on_its_connection(sql: bytes, leaves: bool) -> None:
    assert leaves_traces(sql) is leaves


@pytest.mark.parametrize(
    "sql",
    [
        b"SELECT 1 FORMAT JSON",
        b"SELECT 1\n format JSON ;\n",
        b"SELECT 'it''s \\' FORMAT CSV' FORMAT JSON",
        b"SELECT 1 -- FORMAT CSV\nFORMAT JSON -- really",
        b"SELECT 1 FORMAT JSON SETTINGS max_threads = 1",
        b"SELECT a - 1, b / 2 /* it's */ FROM `t``x` FORMAT JSON",
    ],
)
def test_the_format_at_the_end_of_a_query(sql: bytes) -> None:
    assert output_format(sql) == ("JSON", True)


@pytest.mark.parametrize(
    "sql",
    [b"SELECT 1", b"SELECT 'FORMAT JSON'", b"SELECT format('{}', 1)", b"SELECT 1 AS format", b"SELECT `FORMAT JSON`"],
)
def test_a_query_without_a_format(sql: bytes) -> None:
    assert output_format(sql) is None


@pytest.mark.parametrize(
    "sql", [b"SELECT 1 -- FORMAT JSON", b"SELECT $$it's$$ FORMAT JSON", b"SELECT '' # FORMAT JSON"]
)
def test_a_format_that_may_be_none_is_not_for_sure(sql: bytes) -> None:
    assert output_format(sql) == ("JSON", False)


@pytest.mark.parametrize(
    ("sql", "head", "format", "data"),
    [
        (b"INSERT INTO t FORMAT CSV\n1,2\n", b"INSERT INTO t ", "CSV", b"1,2\n"),
        (b"insert into t (format, values) format CSV 1", b"insert into t (format, values) ", "CSV", b"1"),
        (b"INSERT INTO t FORMAT Native\r\n\n\x00", b"INSERT INTO t ", "Native", b"\n\x00"),
        (b"INSERT INTO t FORMAT CSV", b"INSERT INTO t ", "CSV", b""),
        (b"WITH 1 AS y INSERT INTO t FORMAT CSV\n1;\n", b"WITH 1 AS y INSERT INTO t ", "CSV", b"1;\n"),
        (
            b"WITH {SELECT:Int8} AS v INSERT INTO t FORMAT CSV\n",
            b"WITH {SELECT:Int8} AS v INSERT INTO t ",
            "CSV",
            b"",
        ),
        (b"INSERT INTO t FORMAT /* x */ CSV", b"INSERT INTO t ", "", b""),
        (b"INSERT INTO `FORMAT x` -- FORMAT y\nVALUES (1)", b"INSERT INTO `FORMAT x` -- FORMAT y\n", "Values", b" (1)"),
        (
            b"INSERT INTO t SETTINGS a = 'FORMAT x' FORMAT TSV\n1",
            b"INSERT INTO t SETTINGS a = 'FORMAT x' ",
            "TSV",
            b"1",
        ),
        (
            b"INSERT INTO FUNCTION file('FORMAT', 'x') FORMAT CSV\n",
            b"INSERT INTO FUNCTION file('FORMAT', 'x') ",
            "CSV",
            b"",
        ),
    ],
)
def test_where_the_data_of_an_insert_begins(sql: bytes, head: bytes, format: str, data: bytes) -> None:
    found = split_insert(sql)
    if not format:
        assert found is None
        return
    assert found is not None
    assert (found.head, found.format, sql[found.data_at :]) == (head, format, data)


@pytest.mark.parametrize(
    "sql",
    [
        b"INSERT INTO t SELECT 1 FORMAT CSV",
        b"WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x FORMAT CSV",
        b"INSERT INTO t WITH 1 AS a SELECT a",
        b"INSERT INTO t FROM INFILE 'x' FORMAT CSV",
        b"INSERT INTO t",
        b"INSERT INTO t FORMAT",
    ],
)
def test_an_insert_without_data(sql: bytes) -> None:
    assert split_insert(sql) is None


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        (b"SELECT 1", b"SELECT 1"),
        (b"SELECT queryID()", b"SELECT ('it\\'s' AS `queryID()`)"),
        (b"SELECT lower(query_id ( ))", b"SELECT lower(('it\\'s' AS `query_id()`))"),
        (b"INSERT INTO t SELECT initialQueryID()", b"INSERT INTO t SELECT 'it\\'s'"),
        (b"SELECT 'queryID()', `queryID()`, 1 -- queryID()\n", b"SELECT 'queryID()', `queryID()`, 1 -- queryID()\n"),
        (b"SELECT $$'$$, queryID()", b"SELECT $$'$$, ('it\\'s' AS `queryID()`)"),
        (b"CREATE VIEW v AS SELECT queryID()", b"CREATE VIEW v AS SELECT queryID()"),
    ],
)
def test_the_id_that_a_client_gave_is_the_id_of_its_query(sql: bytes, named: bytes) -> None:
    assert name_query(sql, "it's") == named
