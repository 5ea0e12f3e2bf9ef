"""Terms: columns of whatever they are used on."""

from __future__ import annotations

import pytest

from aaiclick.data import Object, col, lit, rank, raw, row_number
from aaiclick.errors import InputError, NotAligned


async def test_a_term_is_used_on_whatever_has_its_columns(sales: Object) -> None:
    total = col("price") * col("pieces")
    assert await sales.with_columns(total=total)["total"].data() == [4.5, None, 2.5, 8.0]
    assert await sales.where(total > 3)["city"].data() == ["Rome", "Oslo"]
    assert await sales.group_by("city").agg(t=total.sum()).order_by("city").data() == {
        "city": ["Oslo", "Rome"],
        "t": [8.0, 7.0],
    }


async def test_a_term_knows_which_columns_are_truths(sales: Object) -> None:
    assert await sales.where(~col("paid"))["price"].data() == [2.0]
    assert await sales.with_columns(both=col("paid") & (col("price") > 2))["both"].data() == [False, False, True, True]


def test_a_term_of_an_unknown_column_is_refused(sales: Object) -> None:
    with pytest.raises(InputError, match="the columns are city, price, pieces, paid"):
        sales.where(col("prize") > 1)
    with pytest.raises(InputError, match="prize"):
        _ = sales["price"] + col("prize")


async def test_beside_a_frame_a_term_means_the_frames_columns(sales: Object) -> None:
    swapped = sales[["price", "pieces"]].rename({"price": "pieces", "pieces": "price"})
    assert await (swapped["pieces"] + col("pieces")).data() == [3.0, 4.0, 5.0, 8.0]


async def test_a_single_value_may_stand_in_a_term(sales: Object) -> None:
    assert await sales.where(col("price") > sales["price"].mean())["price"].data() == [4.0]


def test_a_column_of_another_object_may_not(sales: Object, numbers: Object) -> None:
    with pytest.raises(NotAligned):
        _ = col("price") + numbers


async def test_sql_of_trusted_code_stands_as_it_is(sales: Object) -> None:
    assert await sales.with_columns(n=raw("length(city) + 1"))["n"].data() == [5, 5, 5, 5]
    assert await sales.where(~raw("price > 2").cast(bool))["price"].data() == [1.5, 2.0]


async def test_ranks_are_shared_by_equal_values(sales: Object) -> None:
    found = sales.with_columns(
        place=rank().over(order_by="city"),
        number=row_number().over("city", order_by="price", descending=True),
    )
    assert await found.order_by("city", "price")[["place", "number"]].data() == {
        "place": [1, 1, 3, 3],
        "number": [2, 1, 2, 1],
    }


def test_rows_around_are_told_by_columns(sales: Object) -> None:
    with pytest.raises(InputError, match="a column's name"):
        row_number().over(5)


async def test_a_total_beside_rows_is_refused(sales: Object) -> None:
    with pytest.raises(InputError, match="row by row"):
        await sales.with_columns(x=col("price").sum()).data()


def test_a_term_tells_little_of_itself() -> None:
    assert repr(col("a") + lit(1)) == "Term(…)"
