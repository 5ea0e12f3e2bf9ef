"""The page of verbs: every verb is there, and every example gives what stands beside it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import AsyncIterator
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aaiclick.data import Frame, Object, Query, View, col, create_object_from_value, data_context
from aaiclick.data.groups import Groups
from aaiclick.data.query.total_methods import Totals
from tests.support.pages import DOCS, title

PAGE = DOCS / "reference" / "verbs.md"


class Row(NamedTuple):
    verb: str
    example: str
    gives: str


def rows() -> list[Row]:
    """The rows of all tables of the page."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^\| `([\w().]+)` \| [^|]+ \| `(.+)` \| `(.+)` \| [^|]*\|$", text, re.MULTILINE)
    return [Row(*each) for each in found]


def public(*kinds: type) -> set[str]:
    return {name for kind in kinds for name in dir(kind) if not name.startswith("_")}


def test_every_verb_is_on_its_page() -> None:
    groups = {f"group_by().{name}" for name in public(Groups)}
    assert public(Query, Object, View) - public(Totals) | groups == {row.verb for row in rows()} | {"table_id"}
    assert len(re.findall(r"^\| `", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == len(rows())


@pytest.fixture
async def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, Any]]:
    """What the examples use: the tables of the page's own block."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None, title(PAGE)
    values = {line.partition(" = ")[0]: ast.literal_eval(line.partition(" = ")[2]) for line in block[1].splitlines()}
    (tmp_path / "towns.csv").write_text("city\nBern\nLyon\n")
    async with data_context():
        found = {name: await create_object_from_value(value) for name, value in values.items()}
        yield {**found, "col": col}


async def answer(example: str, given: dict[str, Any]) -> Any:
    code = compile(example, "<example>", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(code, dict(given))  # noqa: S307 (of our own page)
    found = await found if inspect.iscoroutine(found) else found
    return await found.data() if isinstance(found, Frame) else found


async def test_every_example_gives_what_stands_beside_it(given: dict[str, Any]) -> None:
    wrong = []
    for row in rows():
        found = await answer(row.example, given)
        if found != eval(row.gives, {"inf": inf}):  # noqa: S307 (of our own page)
            wrong.append((row.verb, found))
    assert not wrong
