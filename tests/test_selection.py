"""Which cases on databases the default run has, and how the list of them is made."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import reach, selection

STORE = "tests/orchestration/store/test_x.py"


class Item:
    """As much of a collected test as is looked at."""

    def __init__(self, nodeid: str, *marks: str, **params: Any) -> None:
        self.nodeid, self.marks = nodeid, marks
        if params:
            self.callspec = type("Spec", (), {"params": params})

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None


def on_each(path: str, name: str, others: str = "", databases: tuple[str, ...] = selection.DATABASES) -> list[Any]:
    """The cases of a test."""
    return [Item(f"{path}::{name}[{each}{others and '-'}{others}]", dialect=each) for each in databases]


@pytest.fixture(autouse=True)
def _short_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "LONG", False)
    monkeypatch.setattr(selection, "listed", lambda: {STORE: ["test_kept"]})


def left_out(*items: Any, absent: tuple[str, ...] = ()) -> list[str]:
    return [item.nodeid for item in items if item in selection.long_only(items, absent)]


def test_of_a_listed_file_the_listed_tests_run_on_all_databases_and_the_others_on_sqlite() -> None:
    found = left_out(*on_each(STORE, "test_kept"), *on_each(STORE, "test_other", "x-1"), Item(f"{STORE}::test_plain"))
    assert found == [f"{STORE}::test_other[postgres-x-1]", f"{STORE}::test_other[mariadb-x-1]"]


@pytest.mark.parametrize(
    "path",
    [
        "tests/orchestration/store/test_new.py",
        "tests/orchestration/store/dialects/test_x.py",
        "tests/orchestration/store/test_x_at_once.py",
        "tests/orchestration/bus/test_x.py",
        "tests/contracts/test_x.py",
        "tests/migrations/test_x.py",
        "tests/stories/test_clears_at_once.py",
        "tests/stories/test_storms.py",
        "tests/stories/test_worker_resets.py",
    ],
)
def test_elsewhere_all_run_on_all(path: str) -> None:
    assert left_out(*on_each(path, "test_other")) == []


def test_a_story_runs_on_one_database_and_the_stories_on_all_of_them() -> None:
    ran = set()
    for number in range(20):
        cases = on_each("tests/stories/test_x.py", "test_x", str(number))
        out = left_out(*cases)
        assert out == left_out(*reversed(cases))[::-1]
        (kept,) = [case for case in cases if case.nodeid not in out]
        ran.add(kept.callspec.params["dialect"])
    assert ran == {*selection.DATABASES}


def test_each_rule_meets_on_one_database_and_each_meeting_on_all() -> None:
    path, rules = "tests/stories/test_rules_at_once.py", ("all_done", "always", "one_failed")
    for name in ("test_x", "test_y"):
        cases = [case for rule in rules for case in on_each(path, name, rule, ("postgres", "mariadb"))]
        out = left_out(*cases)
        kept = [case.callspec.params["dialect"] for case in cases if case.nodeid not in out]
        assert (len(kept), {*kept}) == (len(rules), {"postgres", "mariadb"})


def test_what_is_asked_for_by_name_or_has_no_other_case_runs() -> None:
    assert left_out(*on_each(STORE, "test_other", databases=("postgres", "mariadb"))) == []
    assert len(left_out(*on_each("tests/stories/test_x.py", "test_x", databases=("postgres", "mariadb")))) == 1
    assert left_out(*on_each("tests/stories/test_x.py", "test_x", databases=("mariadb",))) == []


def test_without_one_of_the_servers_nothing_else_is_left_out() -> None:
    assert left_out(*on_each(STORE, "test_other"), absent=("mariadb",)) == []


def test_the_long_run_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "LONG", True)
    assert left_out(*on_each(STORE, "test_other")) == []


def test_the_list_names_tests_that_are_there() -> None:
    assert selection.LIST.exists()
    for path, names in selection.parsed(selection.LIST.read_text().splitlines()).items():
        text = (reach.ROOT / path).read_text()
        gone = [name for name in names if not re.search(rf"^(async )?def {name}\(", text, re.MULTILINE)]
        assert not gone, f"{path}: see tests/support/reach.py"


def test_the_list_is_read_as_it_is_written() -> None:
    kept = {"tests/b.py": ["test_2", "test_1"], "tests/a.py": ["test_3"], "tests/c.py": []}
    text = selection.written(kept)
    assert text.splitlines() == ["tests/a.py", "    test_3", "tests/b.py", "    test_1", "    test_2", "tests/c.py"]
    assert selection.parsed(text.splitlines()) == {path: sorted(names) for path, names in kept.items()}


# ---------------------------------------------------------------- how it is made


def test_those_are_chosen_that_together_ask_all() -> None:
    asked = {"one": {"a"}, "two": {"a", "b"}, "three": {"c"}, "four": {"b", "c"}, "none": set[str]()}
    tests = {("tests/x.py", name): each for name, each in asked.items()}
    assert reach.chosen(tests) == [("tests/x.py", "four"), ("tests/x.py", "one")]
    assert reach.missing(tests, {"tests/x.py": ["four", "one"]}) == set()
    assert reach.missing(tests, {"tests/x.py": ["one", "gone"]}) == {"b", "c"}
    assert reach.missing(tests, {}) == set()  # a file that is not on the list runs on all


def test_the_list_is_made_of_what_was_noted_and_checked_against_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "list.txt"
    monkeypatch.setattr(selection, "LIST", made)
    monkeypatch.setattr(selection, "listed", lambda: selection.parsed(made.read_text().splitlines()))
    noted = [("tests/a.py", "test_1", ["x"]), ("tests/a.py", "test_1", ["y"]), ("tests/b.py", "test_2", ["y"])]
    file = tmp_path / "noted.json"
    file.write_text(json.dumps(noted))
    assert reach.main(str(file)) == 0
    assert made.read_text() == "tests/a.py\n    test_1\ntests/b.py\n"
    assert reach.main("--check", str(file)) == 0
    file.write_text(json.dumps([*noted, ("tests/b.py", "test_3", ["z"])]))
    assert reach.main("--check", str(file)) == 1
    assert "asked by no test on the list: z" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("statement", "same"),
    [
        ("INSERT INTO t (a, b) VALUES (%s, %s), (%s, %s)", "INSERT INTO t (a, b) VALUES (%s, %s)"),
        ("SELECT a FROM t WHERE a IN ($1::BIGINT, $2::BIGINT)", "SELECT a FROM t WHERE a IN ($1::BIGINT)"),
        ("SELECT $1,\n $2", "SELECT $3, $4"),
    ],
)
def test_how_many_values_a_statement_has_is_no_difference(statement: str, same: str) -> None:
    assert reach.normal(statement) == reach.normal(same)


def test_other_columns_are_a_difference() -> None:
    assert reach.normal("SELECT (a, b) FROM t") != reach.normal("SELECT (a, c) FROM t")


def test_what_is_marked_as_long_is_for_the_long_run_whatever_is_absent() -> None:
    items = [Item("tests/stories/test_x.py::test_long", "long"), Item("tests/stories/test_x.py::test_short")]
    assert left_out(*items) == left_out(*items, absent=("redis", "postgres")) == ["tests/stories/test_x.py::test_long"]
