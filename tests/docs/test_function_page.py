"""The page of functions: it is what the table prints, and every example gives what stands beside it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from typing import Any

from aaiclick.data import Context, Frame, col, data_context
from aaiclick.data.function_page import functions_markdown
from aaiclick.data.operations import FUNCTIONS
from tests.support.pages import DOCS

WORDS = {"UTC": UTC, "date": date, "datetime": datetime, "timedelta": timedelta}
WORDS |= {"nan": math.nan, "inf": math.inf, "col": col}


async def answer(context: Context, given: str, example: str) -> Any:
    made = await context.create_object_from_value(eval(given, dict(WORDS)))  # noqa: S307 (of our own table)
    if example.startswith("col("):
        frame = made.select(found=eval(example, dict(WORDS)))["found"]  # noqa: S307 (of our own table)
    else:
        frame = eval(f"made.{example}", WORDS | {"made": made})  # noqa: S307 (of our own table)
    assert isinstance(frame, Frame)
    return await frame.data()


async def test_every_example_gives_what_stands_beside_it() -> None:
    wrong = []
    async with data_context() as context:
        for name, operation in FUNCTIONS.items():
            told = operation.told
            assert told is not None, f"describe {name} in its table"
            assert f"{name}(" in told.call
            try:
                found = repr(await answer(context, told.given, told.call))
            except Exception as error:
                found = repr(error)
            if found != repr(eval(told.gives, dict(WORDS))):  # noqa: S307 (of our own table)
                wrong.append((name, found))
    assert not wrong


def test_the_page_is_up_to_date() -> None:
    page = (DOCS / "reference" / "functions.md").read_text(encoding="utf-8")
    assert page == functions_markdown(), "run: python -m aaiclick.data.function_page > docs/reference/functions.md"
