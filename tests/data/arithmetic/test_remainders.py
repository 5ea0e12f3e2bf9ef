"""`//` and `%` of floats beside Python's."""

from __future__ import annotations

import math
from datetime import date
from fractions import Fraction
from random import Random

import pytest

from aaiclick.data import Context, col, raw
from aaiclick.errors import AaiclickError, DataRefused

EDGES = [0.1, -0.1, 1 / 3, 0.5, -2.0, 7.0, 1e300, -1e300, 5e-324, 1.7e308, 2.2e-308, math.inf, -math.inf, -0.0]


def number(chance: Random) -> float:
    match chance.randint(0, 4):
        case 0:
            return chance.choice(EDGES)
        case 1:
            return chance.randint(-60, 60) / chance.randint(1, 60)
        case 2:
            return float(chance.randint(-(2**53), 2**53))
        case 3:
            return math.ldexp(chance.random() - 0.5, chance.randint(-1073, 1023))
    return chance.uniform(-100, 100)


def pairs(count: int) -> list[tuple[float, float]]:
    """Numbers whose quotient is less than 2**53, many of them near a whole one."""
    chance = Random(3)  # no secret
    found: list[tuple[float, float]] = []
    while len(found) < count:
        a, b = number(chance), number(chance)
        if chance.random() < 0.3 and math.isfinite(b):
            a = b * chance.randint(-(2 ** chance.randint(1, 52)), 2 ** chance.randint(1, 52))
        if b and abs(a / b) < 2**53:
            found.append((a, b))
    return found


def floor(a: float, b: float) -> int:
    """Python's `//` of floats may itself be off by one where the quotient is long."""
    if math.isinf(b):
        return -1 if a and (a < 0) != (b < 0) else 0
    return Fraction(a) // Fraction(b)


async def test_remainders_are_exact(context: Context) -> None:
    given = pairs(20_000)
    made = await context.create_object_from_value({"a": [a for a, _ in given], "b": [b for _, b in given]})
    found = await made.with_columns(r=col("a") % col("b"), f=col("a") // col("b")).data()
    rows = zip(given, found["r"], found["f"], strict=True)
    wrong = [(a, b, r, f) for (a, b), r, f in rows if repr(r) != repr(a % b) or f != floor(a, b)]
    assert wrong == []


@pytest.mark.parametrize(
    ("a", "b"), [(5, -1 / 3), (9_007_199_254_740_993, 2.5), (2**64 - 2, 4099.7), (-0.0, 3.0), (-5.0, math.inf)]
)
async def test_beside_whole_numbers(context: Context, a: float, b: float) -> None:
    made = await context.create_object_from_value({"a": [a], "b": [b]})
    assert repr(await (made["a"] % made["b"]).data()) == repr([float(a) % b])


async def test_what_is_not_a_number_and_none(context: Context) -> None:
    made = await context.create_object_from_value({"a": [math.nan, None, 1.0], "b": [2.0, math.inf, None]})
    assert repr(await (made["a"] % made["b"]).data()) == "[nan, None, None]"
    rest = made.where(col("a").is_null() | col("b").is_null())
    assert await rest.with_columns(f=col("a") // col("b"))["f"].data() == [None, None]


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (0.0, 0.0), (math.nan, 0.0), (2.0**60, 0.5), (math.inf, 2.0)])
@pytest.mark.parametrize("sign", ["//", "%"])
async def test_what_cannot_be_exact_is_refused(context: Context, a: float, b: float, sign: str) -> None:
    made = await context.create_object_from_value({"a": [a], "b": [b]})
    with pytest.raises(DataRefused, match="by 0, or the quotient is too large"):
        await (made["a"] % made["b"] if sign == "%" else made["a"] // made["b"]).data()


async def test_a_remainder_within_a_remainder_is_still_a_short_query(context: Context) -> None:
    made = await context.create_object_from_value([7.25])
    nested = made
    for step in (5.5, 3.3, 2.2, 1.1):
        nested = nested % step  # type: ignore[assignment]
    assert await nested.data() == [7.25 % 5.5 % 3.3 % 2.2 % 1.1]


@pytest.mark.parametrize("sign", ["//", "%"])
@pytest.mark.parametrize("other", ["t", "d", "raw"])
async def test_what_is_no_number_is_refused(context: Context, sign: str, other: str) -> None:
    """Not converted: the text `2` is no 2, and a day is no number of days."""
    made = await context.create_object_from_value({"a": [7.5], "t": ["2"], "d": [date(1970, 1, 3)]})
    operand = raw("t || ''") if other == "raw" else col(other)
    for a, b in ((col("a"), operand), (operand, col("a"))):
        with pytest.raises(AaiclickError):
            await made.select(v=a % b if sign == "%" else a // b).data()


async def test_a_number_of_a_type_that_is_not_known(context: Context) -> None:
    made = await context.create_object_from_value({"a": [5.0, -0.0], "b": [-1 / 3, 3.0]})
    found = await made.select(r=col("a") % raw("identity(b)"), f=raw("identity(a)") // col("b")).data()
    assert repr(found) == repr({"r": [5.0 % (-1 / 3), 0.0], "f": [-16, 0]})
