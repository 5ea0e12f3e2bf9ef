"""Products: exactly, or refused."""

from __future__ import annotations

import math

import pytest

from aaiclick.data import Context, col, raw
from aaiclick.errors import DataRefused, InputError

BEYOND = [[2**62, 2], [3] * 41, [2] * 63, [2**63 - 1] * 120, [-(2**63), -1]]


@pytest.mark.parametrize("values", [[], [7], [2**31, 2**31, 1], [-2] * 63, [2**40, 2**40, 0], [-(2**63)], [1, -1, -1]])
async def test_a_product_is_pythons(context: Context, values: list[int]) -> None:
    made = await context.create_object_from_value(values, fields={"value": "Int64"})
    assert await made.product().data() == math.prod(values)


@pytest.mark.parametrize("values", BEYOND)
async def test_a_product_beyond_the_range_is_refused(context: Context, values: list[int]) -> None:
    made = await context.create_object_from_value(values)
    with pytest.raises(DataRefused, match="a product is beyond the range"):
        await made.product().data()


async def test_a_product_so_far_is_none_before_the_first_value(context: Context) -> None:
    made = await context.create_object_from_value({"n": [1, 2, 3, 4, 5], "value": [None, -2, None, 3, 0]})
    found = made.with_columns(v=col("value").cumprod().over(order_by="n"))
    assert await found.order_by("n")["v"].data() == [None, -2, -2, -6, 0]


async def test_what_has_no_exact_product_is_refused(context: Context) -> None:
    made = await context.create_object_from_value({"f": [1.5, 2.0], "n": [1, 2]})
    assert await made["f"].product().data() == 3.0
    with pytest.raises(InputError, match="whole numbers"):
        made.with_columns(v=col("f").cumprod().over(order_by="n"))
    with pytest.raises(InputError, match="Cast it"):
        made["f"].cast("Decimal(9, 2)").product()
    with pytest.raises(DataRefused, match="is not known"):
        await made.agg(v=raw("n").product()).data()
