"""The page of None and NaN: every example gives what stands beside it."""

from __future__ import annotations

import ast
import inspect
import re
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from aaiclick.data import Frame, col, create_object_from_value, data_context
from tests.support.pages import DOCS

TEXT = (DOCS / "reference" / "missing.md").read_text(encoding="utf-8")
KNOWN = {"np": np, "pd": pd, "pl": pl, "pa": pa, "nan": nan, "col": col, "repr": repr}
IN, OUT, COMPUTED = (TEXT.split("\n## ")[number] for number in (1, 2, 3))
NUMBERS = {"k": [1, 2, 3, 4], "x": [2.0, nan, None, 1.0]}


def rows(part: str) -> list[tuple[str, str]]:
    """The examples of a table, and what they give."""
    found = re.findall(r"^\| .+ \| `(.+)` \| `(.+)` \|$", part, re.MULTILINE)
    assert len(found) == len(re.findall(r"^\| ", part, re.MULTILINE)) - 1, "each row has an example"
    return found


async def answer(example: str, given: dict[str, Any]) -> str:
    code = compile(example, "<example>", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(code, {**KNOWN, **given})  # noqa: S307 (of our own page)
    found = await found if inspect.iscoroutine(found) else found
    return repr(await found.data() if isinstance(found, Frame) else found)


CREATE = {"create_object_from_value": create_object_from_value}


async def wrong(examples: list[tuple[str, str]], given: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = [(example, await answer(example, given), gives) for example, gives in examples]
    return [each for each in found if each[1] != repr(eval(each[2], dict(KNOWN)))]  # noqa: S307 (of our own page)


async def test_what_comes_in_is_what_the_page_says() -> None:
    async with data_context():
        examples = [(f"await create_object_from_value({value})", gives) for value, gives in rows(IN)]
        assert await wrong(examples, CREATE) == []


async def test_what_goes_out_is_what_the_page_says() -> None:
    async with data_context():
        assert await wrong(rows(OUT), CREATE) == []


async def test_what_is_computed_is_what_the_page_says() -> None:
    async with data_context():
        table = await create_object_from_value(NUMBERS)
        assert await wrong(rows(COMPUTED), {"t": table}) == []
