"""An engine that was killed between writing an insert down and putting its part into place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from aaiclick.data.embedded.engine import Engine
from aaiclick.data.embedded.insert_tokens import forget_torn_inserts

MADE = "CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a {} SETTINGS non_replicated_deduplication_window = 100"


def run(directory: Path, *statements: str) -> str:
    """Open the engine, run these, and close it; return the last answer."""
    engine = Engine.open(directory)
    try:
        with engine.connection() as connection:
            answers = [str(connection.query(each, "TabSeparated")) for each in statements]
    finally:
        engine.close()
    return answers[-1]


def insert(value: int, token: str) -> str:
    return f"INSERT INTO t SETTINGS insert_deduplication_token = '{token}' VALUES ({value})"


def table_of(directory: Path) -> Path:
    (logs,) = directory.glob("store/*/*/deduplication_logs")
    return logs.parent


def tear(directory: Path, part: str) -> None:
    """Leave what a kill leaves between the two steps: the line is written, and the part has its first name."""
    shutil.move(table_of(directory) / part, table_of(directory) / f"tmp_insert_{part}")


@pytest.mark.parametrize("partition", ["", "PARTITION BY a % 2"])
def test_rows_that_were_written_down_and_are_not_there_are_taken_when_they_are_sent_again(
    tmp_path: Path, partition: str
) -> None:
    run(tmp_path, MADE.format(partition), insert(1, "one"), insert(2, "two"))
    (part,) = [each.name for each in table_of(tmp_path).iterdir() if each.name.endswith("_2_2_0")]
    tear(tmp_path, part)
    again = [insert(2, "two"), insert(2, "two"), insert(1, "one")]
    assert run(tmp_path, *again, "SELECT groupArray(a) FROM (SELECT a FROM t ORDER BY a)").strip() == "[1,2]"


def test_the_first_insert_of_all_may_be_torn(tmp_path: Path) -> None:
    run(tmp_path, MADE.format(""), insert(1, "one"))
    tear(tmp_path, "all_1_1_0")
    assert run(tmp_path, insert(1, "one"), insert(1, "one"), "SELECT count() FROM t").strip() == "1"


def test_what_is_there_is_known_when_it_is_sent_again(tmp_path: Path) -> None:
    run(tmp_path, MADE.format(""), insert(1, "one"), insert(2, "two"))
    assert forget_torn_inserts(tmp_path) == []
    assert run(tmp_path, insert(2, "two"), "SELECT count() FROM t").strip() == "2"


def test_a_part_that_was_merged_into_another_is_there(tmp_path: Path) -> None:
    run(tmp_path, MADE.format(""), insert(1, "one"), insert(2, "two"), "OPTIMIZE TABLE t FINAL")
    shutil.rmtree(table_of(tmp_path) / "all_2_2_0")  # as ClickHouse does some minutes later
    assert forget_torn_inserts(tmp_path) == []
    assert run(tmp_path, insert(2, "two"), "SELECT count() FROM t").strip() == "2"


def test_rows_that_were_deleted_stay_as_they_are(tmp_path: Path) -> None:
    run(tmp_path, MADE.format(""), insert(1, "one"), "TRUNCATE TABLE t")
    assert forget_torn_inserts(tmp_path) == []


def test_a_directory_that_was_never_used_has_nothing_to_mend(tmp_path: Path) -> None:
    assert forget_torn_inserts(tmp_path) == []
