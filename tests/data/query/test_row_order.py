"""Rows below each other."""

from __future__ import annotations

from aaiclick.data import Context, Object, col, concat


async def _lists(context: Context, *, order: bool = False) -> list[Object]:
    return [await context.create_object_from_value([n, n + 2, n + 1], order=order) for n in (10, 0, 20)]


async def test_rows_come_source_after_source_every_time(context: Context) -> None:
    a, b, c = await _lists(context)
    expected = [10, 12, 11, 0, 2, 1, 20, 22, 21]
    for _ in range(40):
        assert await concat(a, b, c).data() == expected
    assert await (await concat(a, b, c)).data() == expected


async def test_many_rows_keep_their_order_within_each_source(context: Context) -> None:
    a, b = [
        await context.create_object_from_value([(n * 7919) % 100_003 for n in range(start, start + 50_000)])
        for start in (0, 50_000)
    ]
    expected = [(n * 7919) % 100_003 for n in range(100_000)]
    assert await concat(a, b).data() == expected
    assert await (await concat(a, b)).data() == expected
    assert await concat(a.where(a >= 0), b + 0).limit(60_000).data() == expected[:60_000]
    await a.insert(concat(b, a))
    assert await a.data() == [*expected[:50_000], *expected[50_000:], *expected[:50_000]]


async def test_what_is_chosen_and_computed_of_them_stays_in_place(context: Context) -> None:
    a, b, c = await _lists(context)
    inner = concat(b, c) + 1
    assert await concat(a, inner.where(inner > 1)).limit(6).data() == [10, 12, 11, 3, 2, 21]
    assert await concat(a, inner).offset(7).data() == [23, 22]
    assert await concat(concat(a, b), concat(c, a)).data() == [10, 12, 11, 0, 2, 1, 20, 22, 21, 10, 12, 11]


async def test_sorted_sources_stay_sorted_below_each_other(context: Context) -> None:
    a, b, c = await _lists(context)
    found = concat(a.order_by("value", descending=True), b.order_by("value"), c)
    assert await found.data() == [12, 11, 10, 0, 1, 2, 20, 22, 21]
    assert await (await found).data() == [12, 11, 10, 0, 1, 2, 20, 22, 21]


async def test_of_ordered_objects_the_result_is_ordered(context: Context) -> None:
    a, b, c = await _lists(context, order=True)
    both = concat(a, b)
    made = await both
    assert made.schema.ordered
    assert await made.data() == [10, 12, 11, 0, 2, 1]
    assert await both.limit(4).data() == [10, 12, 11, 0]
    assert await concat(made, c).data() == [10, 12, 11, 0, 2, 1, 20, 22, 21]
    assert await (both + await concat(c, c)).data() == [30, 34, 32, 20, 24, 22]


async def test_no_column_is_taken_for_a_place(context: Context) -> None:
    table = await context.create_object_from_value({"__source": [2, 1], "__row": [3, 4], "a": [5, 6]})
    found = await concat(table, table.where(col("a") > 5)).data()
    assert found == {"__source": [2, 1, 1], "__row": [3, 4, 4], "a": [5, 6, 6]}


async def test_rows_are_inserted_source_after_source(context: Context) -> None:
    a, b, _ = await _lists(context)
    target = await context.create_object_from_value([7])
    await target.insert(concat(b, a))
    assert await target.data() == [7, 0, 2, 1, 10, 12, 11]
