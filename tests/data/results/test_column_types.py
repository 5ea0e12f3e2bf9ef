"""The columns of queries and Views that have not run."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, Object, View, col
from aaiclick.data.results.column_types import is_number, is_ordered, types
from aaiclick.errors import DataRefused


async def test_a_query_tells_its_schema_without_running(context: Context, sales: Object) -> None:
    query = sales.with_columns(total=col("price") * col("pieces")).group_by("city").agg(t=("total", "sum"), n="count")
    assert str(query.schema) == "Schema(table: city: String, t: Float64, n: UInt64)"
    assert query.schema is query.schema
    assert sales["price"].sum().schema.shape == "scalar"
    assert await types(context.client, query._relation) == query.schema.types
    wrong = sales.where("throwIf(price > 0) = 0")
    assert wrong.schema.names == ["city", "price", "pieces", "paid"]  # it would fail, if it ran
    with pytest.raises(DataRefused):
        _ = sales.where("nope = 1").schema


async def test_a_view_tells_its_schema_and_its_fields(context: Context, sales: Object) -> None:
    view = sales[["paid", "pieces"]].where(col("paid")).limit(1)
    assert isinstance(view, View)
    assert view.schema.types == {"paid": "Bool", "pieces": "Nullable(Int64)"}
    assert view.selected_fields == ("paid", "pieces")
    assert sales.selected_fields is None
    ordered = await context.create_object_from_value([1, 2], order=True)
    assert (ordered + 1).schema.ordered
    assert (ordered + 1).schema.names == ["value"]


@pytest.mark.parametrize(
    ("kind", "number", "ordered"),
    [
        ("Nullable(Int64)", True, True),
        ("Decimal(9, 2)", True, True),
        ("LowCardinality(String)", False, True),
        ("Map(String, Int8)", False, False),
        ("Bool", False, True),
        ("Dynamic", False, False),
    ],
)
def test_types_are_numbers_or_not_and_have_an_order_or_not(kind: str, number: bool, ordered: bool) -> None:
    assert (is_number(kind), is_ordered(kind)) == (number, ordered)
