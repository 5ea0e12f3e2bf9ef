"""Casts that change no value."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import Context, create_object_from_value
from aaiclick.data.parsing.exact_casts import exact_cast
from aaiclick.errors import DataRefused, InputError
from tests.support.roads import TIMES

TEXTS = ["2024-02-30", "2023-02-29", "2024-1-2", "0000-00-00", "1850-01-01", "2024-01-02 00:00:00", "abc", ""]
CLOCKS = [
    *("2024-02-30 00:00:00", "2024-01-02 25:00:00", "2024-01-02 23:59:60", "2024-01-02", "2024-01-02 03:04:05Z"),
    *("2024-01-02 03:04:05.1234567", "1850-01-01 00:00:00", "x"),
]


@pytest.mark.parametrize("text", TEXTS)
async def test_a_text_that_is_no_day_is_refused(context: Context, text: str) -> None:
    made = await create_object_from_value([text])
    for kind in ("Date", "Date32", "Nullable(Date32)"):
        with pytest.raises(DataRefused):
            await made.cast(kind).data()


@pytest.mark.parametrize("text", CLOCKS)
async def test_a_text_that_is_no_time_is_refused(context: Context, text: str) -> None:
    made = await create_object_from_value([text])
    for kind in ("DateTime", "DateTime64(6)", "Nullable(DateTime64(3))"):
        with pytest.raises(DataRefused):
            await made.cast(kind).data()


SHORT = datetime(2024, 1, 2, 3, 4, 5)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (TIMES[0], "DateTime64(3)", None),
        (TIMES[0], "DateTime", None),
        (datetime(1950, 1, 1), "DateTime", None),  # noqa: DTZ001
        (datetime(2290, 1, 1), "DateTime64(9)", None),  # noqa: DTZ001
        (datetime(1950, 1, 1), "Date", None),  # noqa: DTZ001
        (date(2200, 1, 1), "Date", None),
        (date(2200, 1, 1), "DateTime", None),
        (1.5, "DateTime", None),
        (2**40, "DateTime", None),
        (float("nan"), "Date32", None),
        (SHORT, "DateTime", SHORT),
        (SHORT, "DateTime64(9)", SHORT),
        (TIMES[0], "Date32", date(2024, 1, 2)),
        (TIMES[0], "Date", date(2024, 1, 2)),
        (date(2024, 1, 2), "DateTime64(6)", datetime(2024, 1, 2)),  # noqa: DTZ001
        (date(2024, 1, 2), "Nullable(DateTime)", datetime(2024, 1, 2)),  # noqa: DTZ001
        (1_704_164_645, "DateTime64(3)", SHORT),
        ("2024-01-02T03:04:05", "DateTime64(6)", SHORT),
        ("2024-01-02", "Date", date(2024, 1, 2)),
        (5, "String", "5"),
        ("5", "Int64", 5),
    ],
)
async def test_a_value_is_the_same_in_another_type_or_refused(
    context: Context, value: Any, kind: str, expected: Any
) -> None:
    made = await create_object_from_value([value])
    if expected is None:
        with pytest.raises(DataRefused):
            await made.cast(kind).data()
    else:
        assert await made.cast(kind).data() == [expected]


async def test_none_stays_none_where_it_may(context: Context) -> None:
    made = await create_object_from_value([None, TIMES[0]])
    assert await made.cast("Nullable(DateTime64(9))").data() == [None, TIMES[0]]
    assert await made.cast("Nullable(Date32)").data() == [None, TIMES[0].date()]
    assert await made.cast("Nullable(String)").data() == [None, str(TIMES[0])]


def test_a_value_is_written_once_however_long_it_is() -> None:
    for kind in ("Int64", "Date32", "DateTime64(6, 'Europe/Rome')", "String"):
        assert exact_cast("the value", kind, "aware").count("the value") == 1


async def test_what_is_no_number_is_refused_also_where_none_is_allowed(context: Context) -> None:
    words = await create_object_from_value(["1", "x"])
    target = await context.create_object({"value": "Nullable(Int64)"})
    for query in (words.cast("Nullable(Int64)"), words.cast("LowCardinality(Nullable(Int64))")):
        with pytest.raises(DataRefused):
            await query.data()
    with pytest.raises(DataRefused):
        await target.insert(words)
    assert await target.count() == 0
    known = await create_object_from_value(["1", None, "-3"])
    assert await known.cast("Nullable(Int64)").data() == [1, None, -3]
    assert await known.cast("LowCardinality(Nullable(String))").data() == ["1", None, "-3"]


async def test_lists_are_cast_element_by_element(context: Context) -> None:
    lists = await create_object_from_value([["1", "2"], ["x"]])
    with pytest.raises(DataRefused):
        await lists.cast("Array(Nullable(Int64))").data()
    assert await lists.limit(1).cast("Array(Nullable(Int64))").data() == [[1, 2]]
    with pytest.raises(InputError, match="tuples and maps"):
        lists.cast("Tuple(Nullable(Int64), Int64)").explain()


@pytest.mark.parametrize("value", ["0.125", 0.125, Decimal("1.2345"), "1.005", "125e-3"])
async def test_digits_after_the_point_are_not_cut(context: Context, value: Any) -> None:
    made = await create_object_from_value([value])
    for kind in ("Decimal(9, 2)", "Nullable(Decimal(9, 2))"):
        with pytest.raises(DataRefused):
            await made.cast(kind).data()


@pytest.mark.parametrize("value", ["0.12", 0.25, Decimal("1.2300"), "1.500", "12e-1", 7, "-3", 0.1])
async def test_decimals_that_fit_are_taken(context: Context, value: Any) -> None:
    made = await create_object_from_value([value, value])
    assert await made.cast("Decimal(9, 2)").data() == [Decimal(str(value))] * 2
