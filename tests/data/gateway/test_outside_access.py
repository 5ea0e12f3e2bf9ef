"""What reaches outside of the engine."""

from __future__ import annotations

import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.outside_access import OUTSIDE, check_reach

OPEN_ENGINES = {
    *("alias", "buffer", "dictionary", "distributed", "fuzzjson", "fuzzquery", "generaterandom", "graphitemergetree"),
    *("join", "log", "loop", "materializedview", "memory", "merge", "mergetree", "null", "set"),
    *("stripelog", "timeseries", "tinylog", "view"),
}
"""Engines that hold tables of their own, or read those of the same engine."""

SECRET = "/nowhere/secret"


def code_of(engine: Engine, sql: str, *, files: bool = False) -> int:
    try:
        check_reach(sql.encode(), engine, files=files)
    except Fault as found:
        return found.code
    return 0


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM file('{SECRET}')",
        f"SELECT * FROM /* a */ FILE /* b */ ('{SECRET}')",
        f"SELECT $$'$$, * FROM `file`('{SECRET}')",
        f"SELECT file('{SECRET}')",
        f"SELECT arrayMap(file, ['{SECRET}'])",
        f"SELECT * APPLY file FROM (SELECT '{SECRET}')",
        f"SELECT * APPLY(file) FROM (SELECT '{SECRET}')",
        f"WITH (SELECT count() FROM file('{SECRET}')) AS n SELECT n",
        "SELECT * FROM url('http://127.0.0.1/', 'CSV')",
        "SELECT * FROM remote('127.0.0.1', system.one)",
        "SELECT * FROM icebergLocal('/x')",
        "SELECT * FROM s3Cluster('a', 'b')",
        "DESCRIBE TABLE url('http://127.0.0.1/')",
        "EXPLAIN SELECT * FROM url('http://127.0.0.1/', 'CSV')",
        f"INSERT INTO FUNCTION file('{SECRET}', 'CSV', 'a Int8') SELECT 1",
        f"INSERT INTO FUNCTION file('{SECRET}', 'CSV', 'a Int8') FORMAT CSV",
        "INSERT INTO t SELECT * FROM url('http://127.0.0.1/', 'CSV')",
        "CREATE TABLE t (a Int8) ENGINE = File(CSV)",
        "CREATE TABLE t (a Int8) ENGINE = URL('http://127.0.0.1/', 'CSV')",
        "CREATE TABLE t (a Int8) ENGINE = EmbeddedRocksDB(0, '/x') PRIMARY KEY a",
        "CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = 'local', path = '/x/')",
        "CREATE VIEW v AS SELECT * FROM url('http://127.0.0.1/', 'CSV')",
        "CREATE DATABASE d ENGINE = SQLite('/x')",
        "CREATE DATABASE d ENGINE = Filesystem",
        "CREATE DICTIONARY d (a Int8) PRIMARY KEY a SOURCE(HTTP(url 'http://127.0.0.1/')) LAYOUT(FLAT()) LIFETIME(1)",
        f"CREATE DICTIONARY d (a Int8) PRIMARY KEY a SOURCE(FILE(path '{SECRET}')) LAYOUT(FLAT()) LIFETIME(1)",
        "SELECT b FROM values('a Int8, b String ALIAS file(\\'/x\\')', 1)",
        "SELECT * FROM format(JSONEachRow, concat('a Int8, b String DEF', 'AULT file(1)'), '{}')",
        "SELECT * FROM eval('SELECT 1')",
        "SELECT 1 SETTINGS additional_result_filter = 'file(1)'",
        "CREATE TABLE q (query String) ENGINE = QueryRunner",
        f"BACKUP TABLE t TO File('{SECRET}')",
        f"RESTORE TABLE t FROM File('{SECRET}')",
        f"ATTACH TABLE t FROM '{SECRET}' (a Int8) ENGINE = Log",
    ],
)
def test_what_reaches_outside_is_closed_unless_it_is_allowed(engine: Engine, sql: str) -> None:
    assert code_of(engine, sql) == 497
    assert code_of(engine, sql, files=True) == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT file, url, t.s3 FROM t WHERE file = 'file(1)' AND length(url) > 0 -- file('x')",
        "SELECT max(file), 'INTO OUTFILE' FROM t",
        "CREATE TABLE redis (file String, url String) ENGINE = MergeTree ORDER BY file",
        "CREATE TABLE IF NOT EXISTS default.s3 (a Int8) ENGINE = Memory",
        "INSERT INTO redis (file, url) VALUES",
        "INSERT INTO t SELECT format('{}', file) FROM s",
        "SELECT * FROM format(CSVWithNames, 'a,b\\n1,2')",
        "SELECT a IS NULL, format('{}-{}', a, b) FROM values('a Int8, b Int8', (1, 2))",
        "INSERT INTO t VALUES (concat('default', 'file(1)'))",
        "SELECT domain(url), extractURLParameter(url, 'a') FROM t",
        "SHOW TABLES",
        "ATTACH TABLE t",
        "SELECT count() FROM numbers(3)",
    ],
)
def test_what_only_has_the_name_is_not_closed(engine: Engine, sql: str) -> None:
    assert code_of(engine, sql) == 0


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"SELECT 1 INTO OUTFILE '{SECRET}'", 358),
        (f"SELECT 1 into /* here */ outfile '{SECRET}' TRUNCATE FORMAT CSV", 358),
        (f"INSERT INTO t FROM INFILE '{SECRET}' FORMAT CSV", 78),
    ],
)
def test_a_server_has_no_files_of_its_client(engine: Engine, sql: str, code: int) -> None:
    assert code_of(engine, sql, files=True) == code


def test_a_setting_of_a_request_may_not_hold_an_expression(engine: Engine) -> None:
    with pytest.raises(Fault, match="additional_result_filter"):
        check_reach(b"SELECT 1", engine, files=False, settings=["additional_result_filter"])
    check_reach(b"SELECT 1", engine, files=True, settings=["additional_result_filter"])


def test_a_statement_that_nobody_understands_has_its_own_error(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="Code: 62"):
        check_reach(b"SELECT file( FROM", engine, files=False)


def test_all_engines_of_tables_have_been_looked_at(engine: Engine) -> None:
    with engine.connection() as connection:
        found = str(connection.query("SELECT lower(name) FROM system.table_engines FORMAT TSV")).split()
    unknown = {
        name
        for name in found
        if name not in OPEN_ENGINES
        and not name.endswith("mergetree")
        and code_of(engine, f"CREATE TABLE t (a Int8) ENGINE = {name}(1)") != 497
    }
    assert unknown == set()
    assert not OPEN_ENGINES & OUTSIDE - {"fuzzquery", "loop"}
