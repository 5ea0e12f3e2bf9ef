"""The embedded engine: connections that can be trusted, limits, and stopping what runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data.embedded.engine import IDLE_MAX, Engine, machine_memory_bytes, spilling
from aaiclick.errors import EngineUnavailable
from tests.support import warm

FAILS_MIDWAY = "SELECT throwIf(number = 3000000) FROM numbers(10000000)"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    found = Engine.open(tmp_path / "data")
    yield found
    found.close()


def rows(connection: Any, sql: str) -> bytes:
    return connection.query(sql, "TabSeparated").bytes()


def asked(engine: Engine, sql: str, **how: Any) -> bytes:
    with engine.connection(**how) as connection:
        return rows(connection, sql)


def test_chdb_gives_the_rows_of_a_failed_query_to_the_next_one_on_its_connection(engine: Engine) -> None:
    """When this test fails, chdb has become better: connections may live on after an error."""
    connection = engine.connect()
    with pytest.raises(RuntimeError, match="Code: 395"):
        rows(connection, FAILS_MIDWAY)
    assert rows(connection, "SELECT 7") != b"7\n"
    connection.close()


def test_a_connection_is_not_lent_again_after_an_error(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="Code: 395"):
        asked(engine, FAILS_MIDWAY)
    assert [asked(engine, "SELECT 7") for _ in range(3)] == [b"7\n"] * 3


def test_a_connection_is_lent_again_after_a_good_end(engine: Engine) -> None:
    with engine.connection() as first, engine.connection() as second:
        assert first is not second
    with engine.connection() as again:
        assert again in (first, second)


def test_a_connection_comes_with_its_database_and_settings(engine: Engine) -> None:
    asked(engine, "CREATE DATABASE `it's`")
    how: dict[str, Any] = {"database": "it's", "settings": {"max_threads": "3"}}
    for _ in range(2):
        assert asked(engine, "SELECT currentDatabase(), getSetting('max_threads')", **how) == b"it\\'s\t3\n"
    assert asked(engine, "SELECT currentDatabase()") == b"default\n"


def test_what_changes_a_connection_says_so_and_is_not_seen_later(engine: Engine) -> None:
    asked(engine, "SET max_threads = 3", reuse=False)
    assert asked(engine, "SELECT getSetting('max_threads') = 3") == b"0\n"


@pytest.mark.parametrize("settings", [{"nonsense": "1"}, {"max_threads = 1, x": "1"}, {"": ""}])
def test_a_setting_that_is_none_is_refused(engine: Engine, settings: dict[str, str]) -> None:
    with pytest.raises(RuntimeError, match="Code: 115"):
        asked(engine, "SELECT 1", settings=settings)


def test_a_typing_error_is_not_taken_for_an_expression(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="Code: 62"):
        asked(engine, "nonsense")


def test_few_connections_are_kept(engine: Engine) -> None:
    for number in range(1, 2 * IDLE_MAX):
        asked(engine, "SELECT 1", settings={"max_threads": str(number)})
    assert sum(map(len, engine._idle.values())) == IDLE_MAX


def test_a_query_has_a_limit_of_memory(tmp_path: Path) -> None:
    engine = Engine.open(tmp_path / "data", query_memory_bytes_max=50_000_000)
    with pytest.raises(RuntimeError, match="Code: 241"):
        asked(engine, "SELECT groupArray(number) FROM numbers(50000000)")
    assert asked(engine, "SELECT sum(number) FROM numbers(50000000)") == b"1249999975000000\n"
    engine.close()


def test_all_queries_together_have_a_limit_of_memory(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from aaiclick.data.embedded.engine import Engine
engine = Engine.open(Path({str(tmp_path / "data")!r}), memory_bytes_max=600_000_000)
with engine.connection(settings={{"max_memory_usage": "0"}}) as connection:
    connection.query("SELECT groupArray(number) FROM numbers(500000000)")
"""  # in a process of its own: chdb reads this limit once
    ended = warm.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert "Code: 241" in ended.stderr


def test_a_running_query_is_stopped_from_another_thread(engine: Engine) -> None:
    connection, told = engine.connect(), []

    def wait() -> None:
        try:
            rows(connection, "SELECT sum(sleepEachRow(0.000001)) FROM numbers(100000000000000)")
        except RuntimeError as error:
            told.append(str(error))

    assert engine.running_id(connection) is None
    thread = threading.Thread(target=wait)
    thread.start()
    while engine.running_id(connection) is None:
        time.sleep(0.001)
    engine.stop_query(connection)
    thread.join()
    assert "Code: 394" in told[0]
    connection.close()


def test_stopping_touches_no_other_connection(engine: Engine) -> None:
    with engine.connection() as idle:
        engine.stop_query(idle)
        assert rows(idle, "SELECT 1") == b"1\n"


def test_the_directory_is_one_at_a_time(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match="one directory at a time"):
        Engine.open(tmp_path / "other")
    engine.close()
    other = Engine.open(tmp_path / "other")
    assert asked(other, "SELECT 1") == b"1\n"
    other.close()


def test_what_was_stored_is_there_when_it_is_opened_again(engine: Engine) -> None:
    asked(engine, "CREATE TABLE kept (a UInt8) ENGINE = MergeTree ORDER BY a")
    asked(engine, "INSERT INTO kept VALUES (1), (2)")
    engine.close()
    again = Engine.open(engine.directory)
    assert asked(again, "SELECT sum(a) FROM kept") == b"3\n"
    again.close()


def test_a_closed_engine_lends_nothing(engine: Engine) -> None:
    with engine.connection() as lent:
        engine.close()
        assert rows(lent, "SELECT 1") == b"1\n"
    with pytest.raises(EngineUnavailable, match="is closed"):
        asked(engine, "SELECT 1")


def test_another_process_is_told_that_the_directory_is_in_use(engine: Engine) -> None:
    script = (
        "import sys, pathlib; from aaiclick.data.embedded.engine import Engine; Engine.open(pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(engine.directory)]
    ended = warm.run(command, capture_output=True, text=True, timeout=100)
    assert ended.returncode != 0
    assert "EngineUnavailable" in ended.stderr


def test_a_directory_with_a_question_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match="question mark"):
        Engine.open(tmp_path / "why?")


@pytest.mark.parametrize("name", ["a b", "50%", "%41", "a&b=c#d", "é", "it's"])
def test_a_directory_may_have_any_other_name(tmp_path: Path, name: str) -> None:
    engine = Engine.open(tmp_path / name)
    asked(engine, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
    engine.close()
    assert [place.name for place in tmp_path.iterdir()] == [name]


SORTS = "SELECT count() FROM (SELECT toString(sipHash64(number)) AS a FROM numbers(8000000) ORDER BY a LIMIT 7999999)"


def test_a_sort_goes_to_disk_before_it_is_refused(tmp_path: Path) -> None:
    """In a process of its own: the limit counts for all that chdb takes in one."""
    program = f"""
from pathlib import Path
from aaiclick.data.embedded.engine import Engine

engine = Engine.open(Path({str(tmp_path / "data")!r}), memory_bytes_max=150_000_000)
with engine.connection() as connection:
    print(connection.query({SORTS!r}, "TabSeparated"))
engine.close()
"""
    told = warm.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told.stdout.strip() == "7999999", told.stderr


def test_without_a_limit_half_of_the_machine_is_left_to_others(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "container").write_text("1000000000\n")
    (tmp_path / "none").write_text("max\n")
    assert machine_memory_bytes([tmp_path / "container", tmp_path / "none", tmp_path / "missing"]) == 1_000_000_000
    limit = asked(engine, "SELECT value FROM system.server_settings WHERE name = 'max_server_memory_usage'")
    assert int(limit) == machine_memory_bytes() // 2


def test_every_connection_knows_when_to_go_to_disk(engine: Engine) -> None:
    found = asked(
        engine, "SELECT name, toUInt64(value) FROM system.settings WHERE name LIKE 'm%_external_%' AND changed"
    )
    told = dict(line.split("\t") for line in found.decode().splitlines())
    assert {name: int(value) for name, value in told.items()} == spilling(machine_memory_bytes() // 2)
