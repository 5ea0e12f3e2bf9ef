"""When two queries are one."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from aaiclick.data import Context, Frame, Object, col
from aaiclick.data.compiling.same_queries import Steps


@pytest.fixture
async def rows(context: Context) -> Object:
    return await context.create_object_from_value({"k": ["x", "y"], "p": [1, 2], "t": [[1], [2]]})


def same(one: Frame, other: Frame) -> bool:
    steps = Steps()
    return steps.number(one._relation) == steps.number(other._relation)


async def test_the_same_steps_over_the_same_table_are_one_query(rows: Object) -> None:
    def written() -> Frame:
        groups = rows.where((col("p") + 1).isin([2, 3]), rows["k"].isin(rows["k"])).group_by("k")
        totals = groups.agg(n="count", most=(col("p") * 2).max()).where(col("n") < rows["p"].max())
        return totals.join(rows.explode("t"), on="k").concat(totals.join(rows.explode("t"), on="k")).unique("k")

    assert same(written(), written())

    def running() -> Frame:
        return rows.with_columns(r=col("p").sum().over("k", order_by="p")).cast("String").order_by("p").limit(1)

    assert same(running(), running())


async def test_whatever_differs_makes_another_query(rows: Object, context: Context) -> None:
    other = await rows.copy()
    pairs = [
        (rows.limit(1), rows.limit(2)),
        (rows.order_by("p"), rows.order_by("p", descending=True)),
        (rows.where(col("p") == 1), rows.where(col("p") == 1.0)),
        (rows.where(col("p") == 0.0), rows.where(col("p") == -0.0)),
        (rows.where(col("p").isin([1])), rows.where(col("p").isin([True]))),
        (rows.explode("t"), rows.explode("t", keep_empty=True)),
        (rows.where("k > 'x'"), other.where("k > 'x'")),
        (rows.where(col("k") == datetime(2024, 1, 1, tzinfo=UTC)), rows.where(col("k") == date(2024, 1, 1))),
        (rows.where("now() > t"), rows.where("now() > t")),
    ]
    assert [same(*pair) for pair in pairs] == [False] * len(pairs)


async def test_long_queries_are_compared(rows: Object) -> None:
    def long() -> Frame:
        found: Frame = rows
        for number in range(120):
            found = found.unique() if number % 2 else found.order_by("p").limit(number)
        return found

    assert same(long(), long())


async def test_windows_of_other_rows_are_other_queries(rows: Object) -> None:
    def rolled(count: int) -> Frame:
        return rows.with_columns(r=col("p").rolling(count).sum().over(order_by="p"))

    assert same(rolled(2), rolled(2))
    assert not same(rolled(2), rolled(3))
    ranks = [rows.with_columns(r=col("p").rank(descending=down).over()) for down in (False, True)]
    assert not same(*ranks)
