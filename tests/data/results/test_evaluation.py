"""Asking for values: nothing runs before, and one query gives them."""

from __future__ import annotations

import gc

import pytest

from aaiclick.data import Context, Object, col
from aaiclick.errors import InputError, StaleObject


async def test_nothing_runs_before_a_value_is_asked_for(numbers: Object) -> None:
    wrong = (numbers // 0).where("no_such_column > 1")
    assert "no_such_column" in wrong.explain()
    with pytest.raises(Exception, match="no_such_column"):
        await wrong.data()


async def test_each_shape_is_its_own_python_value(context: Context, sales: Object, numbers: Object) -> None:
    assert numbers.shape == "list"
    assert sales.shape == "table"
    assert (numbers + 1).sum().shape == "scalar"
    assert sales.agg(n="count").shape == "record"
    record = await context.create_object_from_value({"x": 1, "y": "b"})
    assert await record.data() == {"x": 1, "y": "b"}
    assert await record["y"].data() == "b"
    assert await record.data(orient="records") == [{"x": 1, "y": "b"}]
    with pytest.raises(InputError, match="orient"):
        await record.data(orient="columns")  # type: ignore[arg-type]


async def test_what_is_awaited_becomes_a_table(numbers: Object, sales: Object) -> None:
    doubled = await (numbers * 2)
    assert isinstance(doubled, Object)
    assert await doubled.data() == [2, 4, 6, 8]
    prices = await sales["price"]
    assert (prices.columns, prices.shape) == (("value",), "list")
    top = await sales.order_by("price", descending=True).limit(2)
    assert await top["price"].data() == [4.0, 2.5]
    total = await sales["price"].sum()
    assert (total.shape, await total.data()) == ("scalar", 10.0)


async def test_one_table_may_stay_under_a_name(context: Context, numbers: Object) -> None:
    kept = await (numbers + 1).materialize("answers_kept")
    try:
        assert await (await context.open_object("answers_kept")).data() == [2, 3, 4, 5]
        with pytest.raises(Exception, match="answers_kept"):
            await numbers.materialize("answers_kept")
    finally:
        await context.client.command(f"DROP TABLE {kept.table} SYNC")


async def test_a_table_whose_query_fails_leaves_its_name_free(context: Context, numbers: Object) -> None:
    with pytest.raises(Exception, match="code 70"):
        await (numbers * 100).cast("Int8").materialize("answers_failed")
    made = await numbers.materialize("answers_failed")
    assert await made.count() == 4
    await context.client.command(f"DROP TABLE {made.table} SYNC")


async def test_a_query_holds_its_tables(numbers: Object) -> None:
    query = (await (numbers * 2)) + 1
    gc.collect()
    assert await query.data() == [3, 5, 7, 9]


async def test_counting_arrow_and_pandas(sales: Object) -> None:
    assert await sales.where(col("pieces").not_null()).count() == 3
    table = await sales.arrow()
    assert table.column_names == ["city", "price", "pieces", "paid"]
    frame = await sales.df()
    assert list(frame["price"]) == [1.5, 2.0, 2.5, 4.0]


async def test_the_first_rows_are_shown_wherever_it_is_printed(numbers: Object) -> None:
    assert (await numbers.markdown(2)).count("\n| ") == 3
    assert "and more" in await numbers.markdown(2)
    assert "<table>" in numbers._repr_html_()
    assert "4" in numbers.__rich__()
    assert repr(numbers) == "<Object list: value>"


async def test_what_is_left_of_an_ended_context_says_so(context: Context, numbers: Object) -> None:
    query = numbers + 1
    await context.end()
    for ask in (numbers.data, query.data, numbers.count, numbers.materialize, numbers.arrow):
        with pytest.raises(StaleObject, match="a data_context that has ended"):
            await ask()
    assert query.explain()


async def test_a_copy_is_a_table_of_its_own(numbers: Object) -> None:
    copied = await numbers.copy()
    await numbers.insert([5])
    assert copied.table != numbers.table
    assert await copied.data() == [1, 2, 3, 4]
