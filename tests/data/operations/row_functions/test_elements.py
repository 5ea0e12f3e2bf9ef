"""What is computed of each element of lists."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from aaiclick.data import Context, col
from aaiclick.data.provenance.column_sources import trace
from aaiclick.errors import DataRefused, InputError


async def test_each_element_is_computed_with_types_and_other_columns(context: Context) -> None:
    made = await context.create_object_from_value({"l": [[1, None], []], "k": [10, 20], "s": [["a"], ["b", "c"]]})
    query = made.select(a=col("l").each(lambda x: x * 2 + col("k")), s=col("s").each(lambda x: x.upper() + "!"))
    assert await query.data() == {"a": [[12, None], []], "s": [["A!"], ["B!", "C!"]]}
    assert query.schema.types == {"a": "Array(Nullable(Int64))", "s": "Array(String)"}
    constant = made.select(x=col("l").each(lambda _: 7))
    assert await constant.data() == {"x": [[7, 7], []]}


async def test_functions_of_elements_stand_in_each_other(context: Context) -> None:
    made = await context.create_object_from_value({"x": [[1, 2]], "y": [[10, 20]], "d": [[[1, 2], [3]]]})
    table = made.select(t=col("x").each(lambda x: col("y").each(lambda y: x * y)))
    assert await table.data() == {"t": [[[10, 20], [20, 40]]]}
    sums = made.select(s=col("d").each(lambda inner: inner.each(lambda x: x + 1).list_sum()))
    assert await sums.data() == {"s": [[5, 4]]}


async def test_elements_are_chosen_and_asked(context: Context) -> None:
    lists = [[1, None, 3], [], [None]]
    made = await context.create_object_from_value(lists)
    assert await made.list_where(lambda x: x > 1).data() == [[3], [], []]
    assert await made.list_any(lambda x: x > 1).data() == [True, False, False]
    assert await made.list_all(lambda x: x > 0).data() == [False, True, False]
    assert await (~made.list_any(lambda x: x.is_null())).data() == [False, True, False]
    assert await made.where(col("value").list_any(lambda x: x == 3)).count() == 1


async def test_arithmetic_of_elements_is_checked(context: Context) -> None:
    made = await context.create_object_from_value([[2**62]])
    with pytest.raises(DataRefused, match="beyond the range"):
        await made.each(lambda x: x * 2).data()
    assert await made.each(lambda x: x * 2).wrapping().data() == [[-(2**63)]]


async def test_times_in_lists_are_times(context: Context) -> None:
    given = datetime(2024, 1, 31)  # noqa: DTZ001
    made = await context.create_object_from_value([[given]])
    assert await made.each(lambda x: x + timedelta(hours=1)).data() == [[given + timedelta(hours=1)]]
    assert await made.each(lambda x: x.month()).data() == [[1]]


async def test_long_expressions_with_elements_are_written_out(context: Context) -> None:
    made = await context.create_object_from_value({"l": [[1, 2]], "k": [3]})

    def many(x: Any) -> Any:
        for _ in range(60):
            x = x + col("k")
        return x

    assert await made.select(x=col("l").each(many)).data() == {"x": [[181, 182]]}


async def test_what_is_no_function_of_an_element_is_refused(context: Context) -> None:
    made = await context.create_object_from_value({"l": [[1]], "i": [1]})
    for wrong, told in (
        (lambda: made["l"].each(5), "must be a function"),
        (lambda: made["l"].each(lambda x: x.sum()), "totals and windows"),
        (lambda: made["i"].each(lambda x: x), "needs lists"),
    ):
        with pytest.raises(InputError, match=told):
            wrong()


async def test_its_sources_are_the_list_and_the_columns_beside_it(context: Context) -> None:
    made = await context.create_object_from_value({"l": [[1]], "k": [1], "other": [1]})
    found = trace(made.select(x=col("l").each(lambda x: x + col("k")))._relation).columns["x"]
    assert {each.column for each in found} == {"l", "k"}
