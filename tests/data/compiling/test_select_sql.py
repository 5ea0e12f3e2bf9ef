"""The text of queries: what is folded, what is quoted, and which name means what."""

from __future__ import annotations

from aaiclick.data import Context, Frame, Object, col, raw, row_number
from aaiclick.data.compiling.select_sql import expression_sql, to_sql
from aaiclick.data.operations import AGGREGATES, OPERATORS
from aaiclick.data.query.expressions import Column, Key, Member, Value, call
from aaiclick.data.query.relations import Aggregate, Filter, Nowhere, Project, Slice, Sort, Table, Union

T = Table("t", (Column("a"), Column("b")))
MORE = call("gt", OPERATORS["gt"], Column("a"), Value(1))


def test_rows_and_columns_fold_into_one_select() -> None:
    relation = Project(Slice(Sort(Filter(Filter(T, (MORE,)), (MORE,)), (Key(Column("b"), True),)), 5, 2), {"c": MORE})
    expected = "SELECT toBool(`a` > 1) AS `c` FROM `t` WHERE toBool(`a` > 1) AND toBool(`a` > 1)"
    assert to_sql(relation) == expected + " ORDER BY `b` DESC LIMIT 5 OFFSET 2"


def test_names_and_texts_are_quoted() -> None:
    odd = Table("ta`ble", (Column("co`l"),))
    assert to_sql(odd) == "SELECT `co\\`l` FROM `ta\\`ble`"
    assert expression_sql(Value("it's")) == "'it\\'s'"
    assert expression_sql(Member(Column("a"), ("x'", None), 1)) == "toBool(`a` IN ('x\\''))"
    assert expression_sql(Member(Column("a"), (None,), 1)) == "false"


def test_constants_are_computed_nowhere() -> None:
    assert to_sql(Project(Nowhere(), {"x": Value(1)})) == "SELECT 1 AS `x`"
    assert to_sql(Project(Filter(Nowhere(), (Value(False),)), {"x": Value(1)})).endswith("FROM system.one WHERE false")


def test_an_ordered_table_is_cut_in_its_order() -> None:
    ordered = Table("t", (Column("a"),), ordered=True)
    assert to_sql(Slice(ordered, 2)) == "SELECT `a` FROM `t` ORDER BY `aai_id` LIMIT 2"
    assert to_sql(Slice(Filter(ordered, (MORE,)), 2)).endswith("WHERE toBool(`a` > 1) ORDER BY `aai_id` LIMIT 2")
    sorted_otherwise = Slice(Sort(ordered, (Key(Column("a")),)), 2)
    assert to_sql(sorted_otherwise) == "SELECT `a` FROM `t` ORDER BY `a` LIMIT 2"


def test_totals_of_the_same_name_are_named_otherwise_inside() -> None:
    total = Aggregate(T, {"b": Column("b")}, {"a": call("sum", AGGREGATES["sum"], Column("a"))})
    assert (
        to_sql(total)
        == "SELECT `b`, `__1` AS `a` FROM (SELECT `b`, ifNull(sum(`a`), 0) AS `__1` FROM `t` GROUP BY `b`)"
    )


def test_unions_name_their_columns() -> None:
    turned = Project(T, {"b": Column("b"), "a": Column("a")})
    assert (
        to_sql(Union((T, turned)))
        == "SELECT `a`, `b` FROM `t` UNION ALL SELECT `a`, `b` FROM (SELECT `b`, `a` FROM `t`)"
    )


async def test_new_columns_are_computed_from_the_old_ones(context: Context) -> None:
    """ClickHouse takes a name for the new column wherever it can."""
    given = await context.create_object_from_value({"a": [1, 2, 3], "b": [10, 20, 30]})
    assert await given.with_columns(a=col("a") + 1, c=col("a") * 2).data() == {
        "a": [2, 3, 4],
        "b": [10, 20, 30],
        "c": [2, 4, 6],
    }
    assert await given.with_columns(a=col("b"), b=col("a")).data() == {"a": [10, 20, 30], "b": [1, 2, 3]}
    assert await given.rename({"a": "b", "b": "a"}).data() == {"b": [1, 2, 3], "a": [10, 20, 30]}
    assert await given.with_columns(a=col("b"), c=raw("a + 1")).data() == {
        "a": [10, 20, 30],
        "b": [10, 20, 30],
        "c": [2, 3, 4],
    }


async def test_conditions_and_keys_before_mean_the_old_columns(context: Context) -> None:
    given = await context.create_object_from_value({"a": [1, 2, 3]})
    narrowed = given.where(col("a") > 1).order_by("a", descending=True)
    assert await narrowed.with_columns(a=-col("a")).data() == {"a": [-3, -2]}
    assert await given.with_columns(a=-col("a")).where(col("a") > -3).order_by("a").data() == {"a": [-2, -1]}


async def test_a_window_is_computed_from_the_rows_that_are_left(numbers: Object) -> None:
    number = row_number().over(order_by="value")
    cut = numbers.order_by("value", descending=True).limit(2)
    assert await cut.with_columns(n=number).order_by("n").data() == {"value": [3, 4], "n": [1, 2]}
    filtered = numbers.where("value > 2").with_columns(n=number)
    assert await filtered.order_by("n").data() == {"value": [3, 4], "n": [1, 2]}


async def test_deep_expressions_work_over_rows_totals_windows_and_constants(context: Context, numbers: Object) -> None:
    windowed = numbers.with_columns(value=col("value").sum().over())["value"]
    single = await context.create_object_from_value(5)
    deep = [numbers, numbers.sum(), windowed, single + 0, numbers.agg(n="count", t=("value", "sum"))]
    for _ in range(500):
        deep = [each + 1 for each in deep]
    assert await deep[0].data() == [501, 502, 503, 504]
    assert await deep[1].data() == 510
    assert await deep[2].data() == [510] * 4
    assert await deep[3].data() == 505
    assert await deep[4].data() == {"n": 504, "t": 510}


async def test_the_deepest_expression_works(numbers: Object) -> None:
    deep: Frame = numbers
    for _ in range(1_400):
        deep = deep + 1
    assert await deep.data() == [1401, 1402, 1403, 1404]


async def test_an_expression_added_to_itself_stays_small(numbers: Object) -> None:
    doubled: Frame = numbers
    for _ in range(30):
        doubled = doubled + doubled
    assert await doubled.data() == [value * 2**30 for value in (1, 2, 3, 4)]
    assert len(doubled.explain()) < 10_000


async def test_a_sorted_query_of_many_computed_columns_is_planned(sales: Object) -> None:
    """ClickHouse's planner went round in circles here (code 572), until one of its steps was switched off."""
    size = col("city").length()
    computed = sales.with_columns(city=col("city").upper(), pieces=col("price"), paid=~(size < size))
    first = await computed.order_by(size, "price").limit(1).data()
    assert first == {"city": ["ROME"], "price": [1.5], "pieces": [1.5], "paid": [True]}
