"""A look into an Object from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.data import create_object_from_value, data_context
from aaiclick.data.browsing import Condition, Order, browse_object, describe_object
from aaiclick.errors import InputError, ObjectNotFound
from tests.support.front_door import local

__all__ = ["local"]


@pytest.fixture(autouse=True)
async def numbers(local: Path) -> None:
    async with data_context():
        await create_object_from_value({"n": [3, 1, 2], "odd name`": ["c", "a", "b"]}, name="numbers")


async def test_its_columns() -> None:
    assert (await describe_object("numbers")).names == ["n", "odd name`"]
    with pytest.raises(ObjectNotFound):
        await describe_object("nothing")


async def test_rows_in_an_order_up_to_a_limit() -> None:
    found = await browse_object("numbers", order_by=[Order("n", descending=True)], limit=2)
    assert (found.rows, found.complete) == ([(3, "c"), (2, "b")], False)
    assert (await browse_object("numbers", limit=3)).complete


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("n", "=", 2), [2]),
        (Condition("n", "!=", 2), [1, 3]),
        (Condition("n", "<", 2), [1]),
        (Condition("n", "<=", 2), [1, 2]),
        (Condition("n", ">", 2), [3]),
        (Condition("n", ">=", 2), [2, 3]),
        (Condition("odd name`", "=", "a"), [1]),
        (Condition("odd name`", "=", "a' OR 1=1 --"), []),
    ],
)
async def test_conditions(condition: Condition, expected: list[int]) -> None:
    found = await browse_object("numbers", columns=["n"], where=[condition], order_by=[Order("n")])
    assert [row[0] for row in found.rows] == expected


async def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="no such column"):
        await browse_object("numbers", columns=["m"])
    with pytest.raises(InputError, match="operator"):
        await browse_object("numbers", where=[Condition("n", "LIKE", 1)])
