"""What Python means by its signs and functions, and what ClickHouse makes of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from aaiclick.data import Context, Object, col, raw
from aaiclick.data.operations import AGGREGATES, FUNCTIONS, OPERATORS, WINDOWS
from aaiclick.errors import DataRefused

LEFT = [-7, -1, 0, 5, 9]


@pytest.mark.parametrize("right", [3, -3, 1, -1, 7])
async def test_division_and_remainder_are_pythons(context: Context, right: int) -> None:
    given = await context.create_object_from_value(LEFT)
    assert await (given // right).data() == [left // right for left in LEFT]
    assert await (given % right).data() == [left % right for left in LEFT]
    assert await (given / right).data() == [left / right for left in LEFT]


@pytest.mark.parametrize("right", [2.5, -0.5])
async def test_division_and_remainder_of_floats_are_pythons(context: Context, right: float) -> None:
    floats = [-7.5, -1.0, 0.0, 5.25, 9.0]
    given = await context.create_object_from_value(floats)
    assert await (given // right).data() == [left // right for left in floats]
    assert await (given % right).data() == [left % right for left in floats]


async def test_a_number_may_stand_on_the_left(numbers: Object) -> None:
    assert await (10 - numbers).data() == [9, 8, 7, 6]
    assert await (10 // numbers).data() == [10, 5, 3, 2]
    assert await (10 % numbers).data() == [0, 0, 1, 2]
    assert await (12 / numbers).data() == [12.0, 6.0, 4.0, 3.0]
    assert await (2**numbers).data() == [2.0, 4.0, 8.0, 16.0]


async def test_division_by_zero_is_infinity_or_refused_as_documented(numbers: Object) -> None:
    assert await (numbers / 0).data() == [math.inf] * 4
    with pytest.raises(DataRefused, match="code 153"):
        await (numbers // 0).data()
    with pytest.raises(DataRefused, match="code 153"):
        await (numbers % 0).data()


async def test_comparisons_are_truths(numbers: Object) -> None:
    assert await (numbers > 2).data() == [False, False, True, True]
    assert await ((numbers > 1) & (numbers < 4)).data() == [False, True, True, False]
    assert await ((numbers == 1) | (numbers != 2)).data() == [True, False, True, True]
    assert await (~(numbers >= 3)).data() == [True, True, False, False]
    assert await ((numbers <= 3) ^ (numbers > 2)).data() == [True, True, False, True]


async def test_the_signs_of_logic_are_those_of_bits_between_numbers(numbers: Object) -> None:
    assert await (numbers & 6).data() == [0, 2, 2, 4]
    assert await (numbers | 4).data() == [5, 6, 7, 4]
    assert await (~numbers).data() == [-2, -3, -4, -5]
    assert await (numbers << 2).data() == [4, 8, 12, 16]


async def test_what_is_asked_again_and_again_has_the_same_answer(context: Context) -> None:
    """An expression that had run three times was compiled by ClickHouse, and gave something else from then on."""
    given = await context.create_object_from_value([-7])
    shifted = ((given << 70) + given + given).wrapping()
    narrowed = raw("toInt8(toDecimal64(value, 2) * 100000)") + col("value")
    answers = []
    for _ in range(6):
        answers.append(await shifted.data())
        with pytest.raises(DataRefused, match="code 407"):
            await given.with_columns(narrowed=narrowed).data()
    assert answers == [answers[0]] * 6


async def test_what_is_computed_with_none_is_none(context: Context) -> None:
    given = await context.create_object_from_value({"x": [1, None], "t": [None, True]})
    assert await (given["x"] + 1).data() == [2, None]
    assert await (given["x"] > 0).data() == [True, None]
    assert await (given["t"] & False).data() == [False, False]
    assert await (given["t"] | True).data() == [True, True]
    assert await (~given["t"]).data() == [None, False]


async def test_a_truth_stays_one_through_choices(context: Context) -> None:
    given = await context.create_object_from_value({"t": [None, True, False], "u": [True, True, False]})
    assert await (~given["t"].fill_null(False)).data() == [True, False, True]
    assert await (~given["t"].coalesce(given["u"])).data() == [False, False, True]
    assert await (~given["u"].choose(given["u"], None)).data() == [False, False, None]
    assert await (~given["u"].max()).data() is False
    assert await (given["u"] & given["u"].max()).data() == [True, True, False]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("upper", (), "ÉTÉ"),
        ("length", (), 3),
        ("contains", ("t",), True),
        ("startswith", ("é",), True),
        ("endswith", ("t",), False),
        ("replace", ("t", "d"), "édé"),
        ("slice", (1, 2), "té"),
        ("join_with", ("-", "1"), "été-1"),
        ("like", ("%t%",), True),
        ("matches", ("^é.é$",), True),
        ("split", ("t",), ["é", "é"]),
    ],
)
async def test_functions_of_texts(context: Context, name: str, arguments: tuple[Any, ...], expected: object) -> None:
    given = await context.create_object_from_value(["été"])
    assert await getattr(given, name)(*arguments).data() == [expected]


async def test_functions_of_times(context: Context) -> None:
    given = await context.create_object_from_value([datetime(2024, 2, 29, 13, 5, 7, tzinfo=UTC)])
    found = [await getattr(given, name)().data() for name in ("year", "month", "day", "hour", "minute", "weekday")]
    assert found == [[2024], [2], [29], [13], [5], [3]]
    assert await given.strftime("%Y/%m").data() == ["2024/02"]


async def test_rounding_is_pythons(context: Context) -> None:
    halves = [0.5, 1.5, 2.5, -0.5]
    given = await context.create_object_from_value(halves)
    assert await given.round().data() == [round(half) for half in halves]
    assert await given.clip(0.0, 2.0).data() == [0.5, 1.5, 2.0, 0.0]


async def test_totals_leave_none_out(sales: Object) -> None:
    totals = {name: (name, "sum") for name in ("price", "pieces", "paid")}
    assert await sales.agg(**totals).data() == {"price": 10.0, "pieces": 6, "paid": 3}
    assert await sales.agg(n="count", known=("pieces", "count")).data() == {"n": 4, "known": 3}
    assert await sales["pieces"].median().data() == 2
    assert await sales["price"].quantile(0.25).data() == 1.875
    assert await sales["price"].quantile(1.0).data() == 4.0
    assert await sales["city"].nunique().data() == 2
    assert await sales["pieces"].collect().data() == [3, 1, 2]


async def test_totals_of_nothing_are_as_documented(sales: Object) -> None:
    none = sales.where("price > 100")
    names = ("sum", "min", "max", "first", "any", "all", "nunique", "collect")
    found = {name: await getattr(none["pieces"], name)().data() for name in names}
    assert found == {
        "sum": 0,
        "min": None,
        "max": None,
        "first": None,
        "any": False,
        "all": True,
        "nunique": 0,
        "collect": [],
    }
    assert await none["price"].sum().data() == 0
    assert await none["price"].max().data() is None
    assert math.isnan(await none["price"].mean().data())
    assert math.isnan(await none["price"].median().data())


async def test_windows_look_at_the_rows_around(numbers: Object) -> None:
    found = numbers.with_columns(
        before=col("value").lag().over(order_by="value"),
        after=col("value").lead().over(order_by="value"),
        later=col("value").lead(2, 0).over(order_by="value"),
        so_far=col("value").cumsum().over(order_by="value"),
        most=col("value").max().over(),
        any=(col("value") > 3).any().over(),
        all=(col("value") < 3).all().over(order_by="value"),
    )
    assert await found.order_by("value").data() == {
        "value": [1, 2, 3, 4],
        "before": [None, 1, 2, 3],
        "after": [2, 3, 4, None],
        "later": [3, 4, 0, 0],
        "so_far": [1, 3, 6, 10],
        "most": [4, 4, 4, 4],
        "any": [True, True, True, True],
        "all": [True, True, False, False],
    }


def test_every_operation_names_the_arguments_that_it_needs() -> None:
    for name, operation in {**OPERATORS, **FUNCTIONS, **AGGREGATES, **WINDOWS}.items():
        if operation.make is not None:  # of what stands in its parentheses
            continue
        missing = [n for n in range(operation.least) if f"{{{n}}}" not in operation.sql]
        assert not missing or "{args}" in operation.sql, name
        assert operation.least <= operation.most, name


async def test_clip_leaves_none_as_it_is(context: Context) -> None:
    made = await context.create_object_from_value([None, -5, 5, 50])
    assert await made.clip(0, 9).data() == [None, 0, 5, 9]


async def test_slices_count_from_the_end_as_python_does(context: Context) -> None:
    words = ["été", "abcdef", "a", "", "👍🏽é"]
    made = await context.create_object_from_value(words)
    for start in (-7, -3, -2, -1, 0, 1, 2, 7):
        for count in (0, 1, 2, 9):
            assert await made.slice(start, count).data() == [word[start:][:count] for word in words]


async def test_the_sum_of_none_alone_is_zero(context: Context) -> None:
    made = await context.create_object_from_value({"a": [None, None], "k": [1, 1]}, fields={"a": "Nullable(Int64)"})
    assert await made["a"].sum().data() == 0
    assert await made.group_by("k").sum("a").data() == {"k": [1], "a": [0]}


async def test_strip_takes_what_python_takes_for_white_space(context: Context) -> None:
    words = ["\tx\n", "\u00a0x", " a b\x1c", "\u3000é\u2009", "", " \t", "x", "\x85y"]
    made = await context.create_object_from_value(words)
    assert await made.strip().data() == [word.strip() for word in words]


async def test_an_empty_text_is_not_replaced(context: Context) -> None:
    made = await context.create_object_from_value(["ab"])
    with pytest.raises(DataRefused, match="must not be empty"):
        await made.replace("", "-").data()
    assert await made.replace("a", "").data() == ["b"]


async def test_the_variance_far_from_zero_is_exact(context: Context) -> None:
    made = await context.create_object_from_value([1e9 + 1, 1e9 + 2, 1e9 + 3])
    assert await made.var().data() == await made.std().data() == 1.0
