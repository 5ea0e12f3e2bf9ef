"""What tests ask of PostgreSQL and MariaDB, and which of them together ask all of it: makes `on_all_databases.txt`.

    TEST_LONG=1 TEST_REACH=FILE scripts/test -- tests/orchestration tests/server tests/cli
    python -m tests.support.reach [--check] FILE...

The first notes for each test on a server the statements that it sends, the methods of the dialect that it calls, and
the errors that the server answers with. The second chooses few tests that together ask all of it, and writes their
names; with --check it writes nothing, and fails where the list does without something.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import isfunction
from pathlib import Path
from typing import Any

import pytest

from tests.support import selection
from tests.support.selection import ALWAYS, LISTED_PLACES, MEETING, Case, case_of

REACH = "TEST_REACH"
ROOT = Path(__file__).parents[2]

VALUE = r"(?:%\(\w+\)s|%s|\$\d+(?:::\w+(?:\[\])?)?)"
ROW = rf"\(\s*{VALUE}(?:,\s*{VALUE})*\s*\)"
ROWS = re.compile(rf"{ROW}(?:,\s*{ROW})*")
NUMBERED, SPACE = re.compile(r"\$\d+"), re.compile(r"\s+")

Test = tuple[str, str]
"""Its file and its name."""


class Reach:
    """A plugin of pytest that notes it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seen: set[str] = set()
        self.found: list[tuple[str, str, list[str]]] = []  # of each case: file, name, and what it asks
        listen(self.seen.add)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        self.seen.clear()
        try:
            return (yield)
        finally:
            case = case_of(item)
            if case is not None and is_chosen(case) and case.database != "sqlite":
                self.found.append((case.path, case.name, sorted(f"{case.database} {what}" for what in self.seen)))

    def pytest_sessionfinish(self) -> None:
        self.file.write_text(json.dumps(self.found))


def is_chosen(case: Case) -> bool:
    """Whether the list says where this case runs."""
    is_met = MEETING.search(case.path) or ALWAYS.search(case.path)
    return case.path.startswith(LISTED_PLACES) and not is_met


def listen(note: Callable[[str], None]) -> None:
    """Tell what is asked of databases, from now on to the end of the process."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    from aaiclick.orchestration.store.dialects import mariadb, mariadb_tables, postgres, postgres_tables

    def sent(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        note(normal(statement))

    def refused(context: Any) -> None:
        note(f"refused {type(context.original_exception).__name__} {normal(context.statement or '')}")

    event.listen(Engine, "before_cursor_execute", sent)
    event.listen(Engine, "handle_error", refused)
    for module in (mariadb, mariadb_tables, postgres, postgres_tables):
        for kind in (each for each in vars(module).values() if isinstance(each, type)):
            for name, method in list(vars(kind).items()):
                if isfunction(method) and kind.__module__ == module.__name__:
                    setattr(kind, name, noted(method, f"calls {name}", note))


def noted(method: Callable[..., Any], called: str, note: Callable[[str], None]) -> Callable[..., Any]:
    @wraps(method)
    def asked(*args: Any, **options: Any) -> Any:
        note(called)
        return method(*args, **options)

    return asked


def normal(statement: str) -> str:
    """A statement, however many values it has."""
    return SPACE.sub(" ", NUMBERED.sub("$", ROWS.sub("(…)", statement)))


# ---------------------------------------------------------------- choosing


def reached(noted: Iterable[tuple[str, str, Iterable[str]]]) -> dict[Test, set[str]]:
    """What each test asks, on all its servers."""
    found: defaultdict[Test, set[str]] = defaultdict(set)
    for path, name, asked in noted:
        found[path, name].update(asked)
    return dict(found)


def chosen(tests: Mapping[Test, set[str]]) -> list[Test]:
    """Tests that together ask what all of them do: again and again the one that adds most."""
    left = set().union(*tests.values())
    found: list[Test] = []
    while left:
        best = max(sorted(tests), key=lambda test: len(tests[test] & left))
        found.append(best)
        left -= tests[best]
    return sorted(found)


def missing(tests: Mapping[Test, set[str]], kept: Mapping[str, Sequence[str]]) -> set[str]:
    """What those do not ask that run on all databases."""
    running = [asked for (path, name), asked in tests.items() if name in kept.get(path, [name])]
    return set().union(*tests.values()) - set().union(*running)


def main(*words: str) -> int:
    files = [Path(word) for word in words if word != "--check"]
    tests = reached(each for file in files for each in json.loads(file.read_text()))
    if "--check" in words:
        lacking = sorted(missing(tests, selection.listed()))
        print(*(f"asked by no test on the list: {what}" for what in lacking), sep="\n")
        return int(bool(lacking))
    kept: dict[str, list[str]] = {path: [] for path, _ in tests}
    for path, name in chosen(tests):
        kept[path].append(name)
    selection.LIST.write_text(selection.written(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
