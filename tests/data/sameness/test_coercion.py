"""Columns of different types below each other, and matched with each other."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import nan
from typing import Any

import pytest

from aaiclick.data import Context, Object, concat
from aaiclick.data.sameness.coercion import matched, one_column
from aaiclick.data.typing.grammar import parse
from aaiclick.errors import DataRefused, InputError

BIG = 2**53 + 1
NOON = datetime(2024, 3, 5, 12, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    **{f"Int{bits}": [-1, 0, 1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1] for bits in (8, 32, 64, 128, 256)},
    **{f"UInt{bits}": [0, 1, 2**bits - 1, 2 ** (bits - 1)] for bits in (8, 32, 64, 128, 256)},
    "Float32": [0.5, 1.0, 2.0**24, -0.0, nan],
    "Float64": [0.5, 1.0, float(BIG - 1), 2.0**63, -(2.0**63), 2.0**64, -0.0, nan],
    "Decimal(9, 2)": [Decimal("0.50"), Decimal(1), Decimal(-1)],
    "Decimal(38, 30)": [Decimal("0.5"), Decimal(1), Decimal(127)],
    "Decimal(76, 0)": [Decimal(1), Decimal(2**64 - 1), Decimal(-(2**127))],
}


async def made(context: Context, kind: str, values: list[Any]) -> Object:
    return await context.create_object_from_value({"k": values}, fields={"k": kind})


async def test_numbers_of_all_types_are_matched_as_python_finds_them_equal_or_refused(context: Context) -> None:
    made_of = {kind: await made(context, kind, values) for kind, values in VALUES.items()}
    wrong = []
    for left, right in product(VALUES, VALUES):
        expected = [a for a, b in product(VALUES[left], VALUES[right]) if a == b or (a != a and b != b)]
        try:
            found = await made_of[left].join(made_of[right], on="k")["k"].data()
        except InputError:
            both = left + right
            assert "Decimal" in both
            assert "Float" in both or "76" in both or "256" in both
            continue
        if sorted(map(comparable, found)) != sorted(map(comparable, expected)):
            wrong.append((left, right, found, expected))
    assert not wrong


async def test_numbers_below_each_other_stay_what_they_were_or_are_refused(context: Context) -> None:
    made_of = {kind: await made(context, kind, values) for kind, values in VALUES.items()}
    wrong, refused = [], 0
    for left, right in product(VALUES, VALUES):
        try:
            found = await concat(made_of[left], made_of[right]).data()
        except (InputError, DataRefused):
            refused += 1
            continue
        expected = [*VALUES[left], *VALUES[right]]
        if sorted(map(comparable, found["k"])) != sorted(map(comparable, expected)):
            wrong.append((left, right, found, expected))
    assert not wrong
    assert refused < len(VALUES) ** 2 / 2


def comparable(value: Any) -> str:
    return str(Fraction(value)) if value == value else "nan"


async def test_signed_and_unsigned_come_into_a_wider_type(context: Context) -> None:
    low, high = await made(context, "Int64", [-(2**63)]), await made(context, "Nullable(UInt64)", [2**64 - 1, None])
    both = concat(low, high)
    assert both.schema.types == {"k": "Nullable(Int128)"}
    assert (await both.data())["k"] == [-(2**63), 2**64 - 1, None]
    assert await both["k"].sum().data() == 2**63 - 1


async def test_whole_numbers_come_to_floats_where_floats_hold_them(context: Context) -> None:
    floats = await made(context, "Float64", [0.5])
    assert (await concat(floats, await made(context, "Int64", [BIG - 1])).data())["k"] == [0.5, float(BIG - 1)]
    with pytest.raises(DataRefused, match="Float64"):
        await concat(floats, await made(context, "Int64", [BIG])).data()


async def test_a_whole_number_that_no_float_is_has_no_partner(context: Context) -> None:
    floats = await made(context, "Float64", [float(BIG - 1), nan])
    whole = await made(context, "Nullable(Int64)", [BIG, BIG - 1, None])
    assert await whole.join(floats, on="k")["k"].data() == [BIG - 1]
    assert await floats.join(whole, on="k", how="anti").count() == 1
    assert sorted(await whole.join(floats, on="k", how="right")["k"].data(), key=str)[0] == float(BIG - 1)


async def test_the_key_of_a_full_join_holds_both_sides(context: Context) -> None:
    low, high = await made(context, "Int64", [-1, 5]), await made(context, "UInt64", [2**64 - 1, 5])
    both = low.join(high, on="k", how="full").order_by("k")
    assert (await both.data())["k"] == [-1, 5, 2**64 - 1]
    assert await (both["k"] + 1).data() == [0, 6, 2**64]
    right = low.join(high, on="k", how="right").order_by("k")
    assert (await right.data())["k"] == [5, 2**64 - 1]
    with pytest.raises(DataRefused):
        await (right["k"] + 1).data()


async def test_members_of_enums_are_their_texts(context: Context) -> None:
    one = await made(context, "Enum8('a' = 1)", ["a"])
    other = await made(context, "Enum8('a' = 2, 'b' = 1)", ["a", "b"])
    assert (await concat(one, other).data())["k"] == ["a", "a", "b"]
    assert await one.join(other, on="k")["k"].data() == ["a"]
    text = await made(context, "LowCardinality(Nullable(String))", ["a", None])
    assert await other.join(text, on="k")["k"].data() == ["a"]
    assert (await concat(other, text).data())["k"] == ["a", "b", "a", None]


async def test_moments_are_matched_whatever_their_digits_and_zones(context: Context) -> None:
    kinds = ["DateTime('UTC')", "DateTime64(3, 'Europe/Rome')", "DateTime64(9, 'UTC')"]
    for one, other in product(kinds, kinds):
        mine, theirs = await made(context, one, [NOON]), await made(context, other, [NOON])
        assert await mine.join(theirs, on="k").count() == 1
        assert len(await concat(mine, theirs)["k"].unique().data() if "9" not in one + other else [NOON]) == 1
    far = await made(context, "DateTime64(3, 'UTC')", [datetime(2290, 1, 1, tzinfo=UTC), NOON])
    fine = await made(context, "DateTime64(9, 'UTC')", [NOON])
    assert await far.join(fine, on="k").count() == 1
    with pytest.raises(DataRefused):
        await concat(far, fine).arrow()


@pytest.mark.parametrize(
    ("one", "first", "other", "second", "hint"),
    [
        ("Date32", date(2024, 3, 5), "DateTime('UTC')", NOON, ".date()"),
        ("Date", date(2024, 3, 5), "DateTime64(3, 'Europe/Rome')", NOON, ".date()"),
        ("Int64", 1, "String", "1", "cast('Int64')"),
        ("String", "1", "Float64", 1.0, "cast('Float64')"),
        ("Decimal(9, 2)", Decimal(1), "Float64", 1.0, "cast('Float64')"),
        ("Enum8('a' = 1)", "a", "Int8", 1, "cast('String')"),
        ("Bool", True, "Decimal(9, 2)", Decimal(1), "cast('Decimal(9, 2)')"),
        ("IPv4", "1.2.3.4", "UInt32", 1, "Cast"),
    ],
)
async def test_what_has_nothing_in_common_is_refused_and_told_what_to_write(
    context: Context, one: str, first: Any, other: str, second: Any, hint: str
) -> None:
    mine, theirs = await made(context, one, [first]), await made(context, other, [second])
    for left, right in ((mine, theirs), (theirs, mine)):
        for call in (concat, lambda a, b: a.join(b, on="k")):
            with pytest.raises(InputError) as error:
                call(left, right)
            assert (hint in str(error.value) and "column k" in str(error.value)) or "on k" in str(error.value)


async def test_truths_are_no_numbers_in_one_column(context: Context) -> None:
    with pytest.raises(InputError, match="Bool"):
        concat(await made(context, "Bool", [True]), await made(context, "Int64", [1]))


async def test_an_order_is_kept(context: Context) -> None:
    one = await context.create_object_from_value([1, 2], order=True)
    other = await context.create_object_from_value([2**64 - 1], fields={"value": "UInt64"}, order=True)
    assert await (await concat(one, other)).data() == [1, 2, 2**64 - 1]


def test_what_is_the_same_or_not_known_is_left_to_clickhouse() -> None:
    whole = parse("Nullable(Int64)")
    assert one_column([whole, parse("Int64")], "concat, column", "k") is None
    assert one_column([whole, None], "concat, column", "k") is None
    assert matched(whole, None, "on", "k") == ("{0}", "{0}")
