"""Which cases on databases only the long run needs; see decision 0077.

A test that takes the parameter `dialect` has a case for each of its databases. The default run does without those of
PostgreSQL and MariaDB that ask nothing which others do not ask, and runs a story on one of its databases. TEST_LONG=1
runs all. What differs between databases is always run on all: contracts, migrations, dialects, the bus, lost
connections, and whatever forces several to meet. There, each rule of triggers meets on one of the databases in turn.
What is marked with `long` is for the long run, on whatever it runs.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pytest

LIST = Path(__file__).parent / "on_all_databases.txt"
LONG = "TEST_LONG" in os.environ
DATABASES = ("sqlite", "postgres", "mariadb")

LISTED_PLACES = ("tests/orchestration/", "tests/server/", "tests/cli/")
STORIES = "tests/stories/"
MEETING = re.compile(r"_at_once\.py$|/test_(interleavings|storms|eight_and_eight|opening_groups)\.py$")
"""Several ask at once there: databases differ in their locks, which no statement shows."""
BY_RULE = re.compile(r"/test_rules_at_once\.py$")
"""Of these meetings, each rule runs on one of the databases, and each meeting on all of them."""
ALWAYS = re.compile(
    r"/(dialects|bus)/|/test_(database_(resets|room)|worker_(cut_off|outages|pauses|replies|resets))\.py$"
)
"""Statements, hints and connections themselves are what is tried there."""


class Case(NamedTuple):
    """A test with its parameters, and the database that it runs on."""

    path: str
    name: str
    others: str
    database: str

    @property
    def without_database(self) -> tuple[str, str, str]:
        return self[:3]


def long_only(items: Iterable[pytest.Item], absent: Collection[str] = ()) -> set[pytest.Item]:
    """Those that the default run leaves out; where a server is absent, only those that are marked as long."""
    if LONG:
        return set()
    items = list(items)
    marked = {item for item in items if item.get_closest_marker("long")}
    if not {*DATABASES}.isdisjoint(absent):
        return marked
    cases = {item: case for item in items if (case := case_of(item)) is not None}
    there: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for case in cases.values():
        there[case.without_database].add(case.database)
    others = {test: sorted(each[2] for each in group) for test, group in groupby(sorted(there), lambda each: each[:2])}

    def runs(case: Case) -> bool:
        found = there[case.without_database]
        if BY_RULE.search(case.path):
            return in_turn(case, found, others[case.path, case.name])
        return is_needed(case, found, listed())

    return marked | {item for item, case in cases.items() if not runs(case)}


def case_of(item: pytest.Item) -> Case | None:
    parameters: Mapping[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    database = parameters.get("dialect")
    if database not in DATABASES:
        return None
    path, _, name = item.nodeid.partition("::")
    function, _, values = name.partition("[")
    others = [value for value in values.removesuffix("]").split("-") if value != database]
    return Case(path, function, "-".join(others), str(database))


def is_needed(case: Case, there: Collection[str], kept: Mapping[str, Sequence[str]]) -> bool:
    """Whether the default run has this case, of a test that has cases for these databases."""
    if MEETING.search(case.path) or ALWAYS.search(case.path):
        return True
    if case.path.startswith(STORIES):
        there = sorted(there, key=DATABASES.index)
        return case.database == there[crc32("::".join(case.without_database).encode()) % len(there)]
    if case.path.startswith(LISTED_PLACES) and case.path in kept and "sqlite" in there:
        return case.database == "sqlite" or case.name in kept[case.path]
    return True


def in_turn(case: Case, there: Collection[str], others: Sequence[str]) -> bool:
    """Whether it is the turn of this database: each of the test's further cases runs on the next one."""
    turns = sorted(there, key=DATABASES.index)
    return case.database == turns[(others.index(case.others) + crc32(case.name.encode())) % len(turns)]


@cache
def listed() -> dict[str, list[str]]:
    """The tests that run on all databases, by file. What is in no file of the list does, too."""
    return parsed(LIST.read_text().splitlines()) if LIST.exists() else {}


def parsed(lines: Iterable[str]) -> dict[str, list[str]]:
    """A line with a path, and under it, indented, one for each test."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in lines:
        if line.startswith("tests/"):
            names = found[line.strip()] = []
        elif line.startswith("    "):
            names.append(line.strip())
    return found


def written(kept: Mapping[str, Iterable[str]]) -> str:
    """The text of such a list."""
    return "".join(f"{path}\n" + "".join(f"    {name}\n" for name in sorted(kept[path])) for path in sorted(kept))
