"""The page of totals and windows: each is there, and every example gives what stands beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from math import isnan, nan
from typing import Any

import pytest

from aaiclick.data import Context, Frame, col, create_object_from_value, data_context, rank, row_number
from aaiclick.data.operations import AGGREGATES, WINDOWS
from aaiclick.data.query.total_methods import Pairs, Totals
from aaiclick.data.query.window_methods import Windows
from tests.support.pages import DOCS

PAGE = (DOCS / "reference" / "totals.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| [^|]+ \| `(.+)` \| `(.+)` \|$", PAGE, re.MULTILINE)
OF_NOTHING = re.findall(r"^\| `(\w+)` \| `([^|]+)` \| `([^|]+)` \| `([^|]+)` \|$", PAGE, re.MULTILINE)
EXAMPLES = [row for row in ROWS if row[0] not in {each[0] for each in OF_NOTHING} or "(" in row[1]]


def test_every_total_and_window_is_on_its_page() -> None:
    methods = {name for kind in (Totals, Pairs, Windows) for name in vars(kind) if not name.startswith("_")}
    assert {row[0] for row in EXAMPLES} == methods | AGGREGATES.keys() | WINDOWS.keys() | {"over"}
    assert len(re.findall(r"^\| `", PAGE, re.MULTILINE)) == len(EXAMPLES) + len(OF_NOTHING)


@pytest.fixture
async def given() -> AsyncIterator[dict[str, Any]]:
    """What the examples use: the tables of the page's own block."""
    block = re.search(r"```python\n(.+?)```", PAGE, re.DOTALL)
    assert block is not None
    told = [each for each in ast.parse(block[1]).body if isinstance(each, ast.Assign)]
    values = {ast.unparse(each.targets[0]): ast.literal_eval(each.value) for each in told}
    async with data_context():
        found = {name: await create_object_from_value(value) for name, value in values.items()}
        visits = await found["visits"].with_columns(at=col("at").cast("DateTime64(6)"))
        names = {"col": col, "rank": rank, "row_number": row_number, "timedelta": timedelta}
        yield {**found, "visits": visits, **names}


async def test_every_example_gives_what_stands_beside_it(given: dict[str, Any]) -> None:
    wrong = []
    for name, example, gives in EXAMPLES:
        found = eval(example, dict(given))  # noqa: S307 (of our own page)
        found = await found.data() if isinstance(found, Frame) else found
        if found != ast.literal_eval(gives):
            wrong.append((name, found))
    assert not wrong


async def test_of_nothing_and_of_nan_they_are_what_the_page_says() -> None:
    async with data_context() as context:
        floats = await made(context, [], "Float64")
        nothing = await made(context, [None, None], "Nullable(Float64)")
        odd = await made(context, [1.0, nan], "Float64")
        wrong = []
        for name, *expected in OF_NOTHING:
            term = getattr(col("x") != 0 if name in ("any", "all") else col("x"), name)()
            found = [await each.agg(v=term)["v"].data() for each in (floats, nothing, odd)]
            if not all(map(is_same, found, [eval(each, {"nan": nan}) for each in expected])):  # noqa: S307
                wrong.append((name, found))
        assert not wrong


async def made(context: Context, values: list[Any], kind: str) -> Frame:
    return await context.create_object_from_value({"x": values}, fields={"x": kind})


def is_same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isnan(expected):
        return isinstance(found, float) and isnan(found)
    return bool(found == expected) and (found is None) == (expected is None)
