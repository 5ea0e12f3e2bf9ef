"""How large an answer may be."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.errors import InputError
from aaiclick.server.mcp.bounds import (
    ANSWER_BYTES_MAX,
    CELL_LENGTH_MAX,
    LETTERS,
    LOG,
    LOG_BYTES_MAX,
    PAGE,
    ROWS,
    RUNS,
    TEXT_LENGTH_MAX,
    TEXTS,
    fitted,
    short_cell,
    shortened,
    size_of,
    visible,
)


def test_what_is_small_stays_as_it_is() -> None:
    answer, cut = {"jobs": [{"id": "1"}], "next": None}, list[str]()
    assert fitted(answer, PAGE, cut) == answer
    assert cut == []


def test_a_long_text_loses_its_middle() -> None:
    lengths: list[int] = []
    text = shortened({"error": "a" * 50 + "b" * 50 + "c" * 50}, 30, lengths)["error"]
    assert text.startswith("a" * 10 + "\n… 120 characters left out …\n")
    assert text.endswith("\n" + "c" * 20)
    assert lengths == [150]


def test_a_page_that_is_too_large_goes_on_after_its_last_row() -> None:
    cut: list[str] = []
    rows = [{"id": str(number), "error": "x" * 3000} for number in range(100)]
    found = fitted({"jobs": rows, "next": "99"}, PAGE, cut)
    left = len(found["jobs"])
    assert 1 < left < 100
    assert found["next"] == str(left - 1)
    assert size_of(found) <= ANSWER_BYTES_MAX
    assert cut == [f"jobs: these are the first {left} of 100 on the page. Its `next` continues after them."]


def test_the_place_of_a_dead_letter() -> None:
    rows = [{"id": str(number), "job_id": "7", "error": "x" * 4000} for number in range(30)]
    found = fitted({"tasks": rows, "next": None}, LETTERS, [])
    assert found["next"] == f"7-{len(found['tasks']) - 1}"


def test_the_longest_list_gives_way_first() -> None:
    cut: list[str] = []
    found = fitted({"tasks": ["x" * 100] * 10, "dependencies": ["y" * 100] * 5000}, TEXTS, cut)
    assert len(found["tasks"]) == 10
    assert size_of(found) <= ANSWER_BYTES_MAX
    assert [each.partition(":")[0] for each in cut] == ["dependencies"]


def test_rows_give_way_and_columns_do_not() -> None:
    columns = [{"name": f"c{number}", "type": "String"} for number in range(100)]
    found = fitted({"columns": columns, "rows": [["x" * 30] * 100] * 100, "complete": True}, ROWS, [])
    assert len(found["columns"]) == 100
    assert 1 <= len(found["rows"]) < 100
    assert found["complete"] is False


def test_of_attempts_the_last_are_left() -> None:
    cut: list[str] = []
    runs = [{"attempt": number, "traceback": "x" * 4000} for number in range(50)]
    found = fitted({"runs": runs}, RUNS, cut)
    assert found["runs"][-1]["attempt"] == 49
    assert len(found["runs"]) < 50
    assert f"the last {len(found['runs'])} of 50" in cut[0]


def test_one_row_that_is_too_large_is_refused() -> None:
    with pytest.raises(InputError, match="Request fewer"):
        fitted({"columns": [], "rows": [["x" * 1000] * 100], "complete": True}, ROWS, [])


@pytest.mark.parametrize("text", ["\x1b", "\U000e0041", "\n", '"', "\\", "\ufffd", "é", "\u202e", "\x00"])
def test_a_log_of_anything_fits(text: str) -> None:
    log = (text * LOG_BYTES_MAX).encode()[:LOG_BYTES_MAX].decode(errors="backslashreplace")
    assert size_of(fitted({"text": log, "size": 1, "begins_at": 0}, LOG, [])) <= ANSWER_BYTES_MAX


def test_what_cannot_be_seen_is_written_as_escapes_but_in_rows() -> None:
    hidden = "a\tb\r\nc\x1b[31m\u202e\U000e0041"
    assert visible([hidden, 1, None]) == ["a\tb\nc\\x1b[31m\\u202e\\U000e0041", 1, None]
    assert fitted({"rows": [[hidden]]}, ROWS, [])["rows"] == [[hidden]]
    assert fitted({"error": hidden}, TEXTS, [])["error"] != hidden


@pytest.mark.parametrize("value", ["x" * CELL_LENGTH_MAX, 1, None, [1, 2], {"a": "b"}])
def test_a_short_value_of_a_row_stays(value: Any) -> None:
    assert short_cell(value, []) == value


@pytest.mark.parametrize("value", ["x" * 100_000, list(range(100_000)), {"a": "b" * 100_000}])
def test_a_long_value_of_a_row_is_cut(value: Any) -> None:
    lengths: list[int] = []
    assert len(short_cell(value, lengths)) < CELL_LENGTH_MAX + 100 <= TEXT_LENGTH_MAX
    assert len(lengths) == 1
