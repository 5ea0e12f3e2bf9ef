"""`+` and `-` beside times, days, texts and lists, compared with Python's."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aaiclick.data import Context, col, lit, raw
from aaiclick.errors import AaiclickError, DataRefused, InputError

ROME = ZoneInfo("Europe/Rome")
SPANS = [
    timedelta(0),
    timedelta(microseconds=1),
    timedelta(days=-1, seconds=5),
    timedelta(days=146_000),
    timedelta(hours=1),
]
FIRST, LAST = datetime(1900, 1, 1), datetime(2299, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001
TIMES = [FIRST, datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 2, 29, 12), LAST]  # noqa: DTZ001


@pytest.mark.parametrize("span", SPANS, ids=str)
@pytest.mark.parametrize("sign", [operator.add, operator.sub])
async def test_a_time_moves_by_a_span_as_in_python_or_is_refused(context: Context, sign: Any, span: timedelta) -> None:
    wanted = [sign(time, span) for time in TIMES]
    for time, moved in zip(TIMES, wanted, strict=True):
        made = await context.create_object_from_value([time, None])
        if FIRST <= moved <= LAST:
            assert await sign(made, span).data() == [moved, None]
        else:
            with pytest.raises(DataRefused, match="out of the range"):
                await sign(made, span).data()


async def test_the_difference_of_two_times_is_exact_seconds_and_leads_back(context: Context) -> None:
    pairs = [(a, b) for a in TIMES for b in TIMES]
    made = await context.create_object_from_value({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    apart = await made.select(d=col("b") - col("a")).data()
    assert apart["d"] == [Decimal((b - a) // timedelta(microseconds=1)).scaleb(-6) for a, b in pairs]
    back = made.select(b=col("a") + (col("b") - col("a")))
    assert (await back.data())["b"] == [b for _, b in pairs]
    assert await made.where((col("b") - col("a")) > timedelta(days=1)).count() == 6
    hours = await made.select(h=(col("b") - col("a")) / timedelta(hours=1)).data()
    assert hours["h"][1] == Decimal((pairs[1][1] - FIRST) // timedelta(microseconds=1)) / Decimal(
        3_600_000_000
    ) // Decimal("1e-18") * Decimal("1e-18")


@pytest.mark.parametrize("kind", ["DateTime", "DateTime64(0)", "DateTime64(3)", "DateTime64(9)"])
async def test_every_type_of_times_is_moved_exactly(context: Context, kind: str) -> None:
    given = datetime(2100, 1, 1)  # noqa: DTZ001
    made = await context.create_object_from_value([given], fields={"value": kind})
    for span in (timedelta(days=10_000), timedelta(microseconds=1)):
        assert await (made + span).data() == [given + span]
        assert await (span + made).data() == [given + span]
    assert await (made - made).data() == [0]
    assert await (made - given).data() == [0]


async def test_a_moment_moves_by_the_time_that_passes_also_where_clocks_are_changed(context: Context) -> None:
    for given in (datetime(2024, 3, 30, 12, tzinfo=ROME), datetime(2024, 10, 27, 1, 30, tzinfo=ROME)):
        made = await context.create_object_from_value([given])
        for hours in (1, 2, 24):
            span = timedelta(hours=hours)
            (found,) = await (made + span).data()
            assert found == (given.astimezone(UTC) + span).astimezone(ROME)
            assert found.tzinfo == ROME
            assert found.utcoffset() == (given.astimezone(UTC) + span).astimezone(ROME).utcoffset()


async def test_days_move_by_whole_days(context: Context) -> None:
    days = [date(1900, 1, 1), date(1969, 12, 31), date(2299, 12, 31)]
    made = await context.create_object_from_value(days[:2])
    assert await (made + timedelta(days=400)).data() == [day + timedelta(days=400) for day in days[:2]]
    assert await (made + 1).data() == [day + timedelta(days=1) for day in days[:2]]
    assert await (made - date(1900, 1, 1)).data() == [0, (days[1] - days[0]).total_seconds()]
    for wrong, told in ((lambda: made + timedelta(hours=1), "whole days"), (lambda: made - timedelta(days=1), "range")):
        with pytest.raises(DataRefused, match=told):
            await wrong().data()
    short = await context.create_object_from_value([date(2149, 6, 6)], fields={"value": "Date"})
    assert await (short + timedelta(days=1)).data() == [date(2149, 6, 7)]


async def test_texts_and_lists_are_put_behind_each_other(context: Context) -> None:
    made = await context.create_object_from_value({"a": ["é", None], "b": ["x", "y"], "n": [1, 2], "l": [[1], []]})
    assert await made["a"].data() == ["é", None]
    assert await (made["a"] + "!").data() == ["é!", None]
    assert await ("<" + made["a"]).data() == ["<é", None]
    found = await made.select(x=col("b") + "-" + col("a"), l=col("l") + col("l")).data()
    assert found == {"x": ["x-é", None], "l": [[1, 1], []]}
    for wrong in (lambda: made["a"] + 1, lambda: made.select(x=col("n") + col("b")), lambda: made["n"] + "x"):
        with pytest.raises(InputError, match="join_with"):
            wrong()


async def test_what_lies_under_none_is_not_looked_at(context: Context) -> None:
    made = await context.create_object_from_value([LAST, FIRST])
    hidden = await made.select(t=raw("nullIf(value, toDateTime64('2299-12-31 23:59:59.999999', 6))"))
    assert hidden.schema["t"].type == "Nullable(DateTime64(6))"
    assert await (hidden["t"] + timedelta(days=1)).data() == [None, FIRST + timedelta(days=1)]


@pytest.mark.parametrize("wrong", [lambda: col("t") + 0.5, lambda: col("t") + lit(2**80), lambda: col("t") + col("t")])
async def test_what_moves_no_time_is_refused(context: Context, wrong: Any) -> None:
    made = await context.create_object_from_value({"t": [FIRST]})
    with pytest.raises(AaiclickError):
        await made.select(x=wrong()).data()
