"""A look into an Object from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.data import create_object_from_value, data_context
from aaiclick.data.browsing import Condition, Order, browse_object, describe_object, list_stored, query_rows
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


async def test_those_that_stay_with_their_sizes() -> None:
    (found,) = await list_stored()
    assert found[:3] == ("numbers", "p_numbers", 3)
    assert found.bytes


async def test_one_select_up_to_a_limit() -> None:
    found = await query_rows("SELECT n * 10 AS ten FROM p_numbers ORDER BY n", limit=2)
    assert (found.names, found.rows, found.complete) == (["ten"], [(10,), (20,)], False)
    assert (await query_rows("SELECT max(n) FROM p_numbers; -- the largest", limit=1)).complete
    for wrong in ("DROP TABLE p_numbers", "SELECT 1; SELECT 2", "SELECT 1)", "", "SHOW TABLES"):
        with pytest.raises(InputError, match="SQL"):
            await query_rows(wrong)
    assert len(await list_stored()) == 1
