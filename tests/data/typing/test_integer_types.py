"""The types of whole numbers beside what ClickHouse says of them."""

from __future__ import annotations

from itertools import product

import pytest

from aaiclick.data import Context
from aaiclick.data.typing.grammar import Type, parse
from aaiclick.data.typing.integer_types import Whole, alike, bits_of, limit_of, named, null_or, widened

KINDS = [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64, 128, 256)]


@pytest.mark.parametrize("sign", ["+", "-", "*"])
async def test_two_whole_numbers_make_what_clickhouse_makes_of_them(context: Context, sign: str) -> None:
    pairs = list(product(KINDS, repeat=2))
    told = ", ".join(f"toTypeName(to{one}(1) {sign} to{other}(1))" for one, other in pairs)
    found = await context.client.rows(f"SELECT {told}")
    made = [str(widened(sign, (parse(one), parse(other)))) for one, other in pairs]
    assert made == [column[0] for column in found.columns]


def test_a_truth_is_a_number_of_eight_bits() -> None:
    assert (Whole(Type("Bool")).bits, Whole(Type("Bool")).signed) == (8, False)


@pytest.mark.parametrize(
    ("one", "other", "kind", "text"),
    [
        ("Int8", "Int8", "Int8", "f({0}, {1})"),
        ("Int8", "UInt8", "Int16", "f(toInt16({0}), toInt16({1}))"),
        ("Int64", "UInt8", "Int64", "f({0}, toInt64({1}))"),
        ("Int8", "UInt256", "Int256", "f(toInt256({0}), accurateCast({1}, 'Int256'))"),
    ],
)
def test_both_become_the_signed_type_that_holds_them(one: str, other: str, kind: str, text: str) -> None:
    kinds = (parse(one), parse(other))
    assert alike("f({0}, {1})", kinds, [Whole(each) for each in kinds]) == (parse(kind), text)


def test_what_lies_under_none_is_not_looked_at() -> None:
    kinds = (parse("Nullable(Int8)"), named(8, signed=True))
    assert null_or("f({0}, {1})", kinds) == "if(isNull({0}), NULL, f(assumeNotNull({0}), {1}))"
    assert null_or("f({0}, {1})", kinds[1:]) == "f({0}, {1})"


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        ("Int8", -128, 127),
        ("UInt64", 0, 2**64 - 1),
        ("Nullable(Int128)", -(2**127), 2**127 - 1),
        ("UInt256", 0, 2**256 - 1),
        ("Bool", 0, 1),
    ],
)
def test_no_whole_number_is_beyond_the_limit_of_its_type(kind: str, least: int, most: int) -> None:
    assert max(-least, most) <= limit_of(parse(kind))


@pytest.mark.parametrize(("digits", "bits"), [(1, 32), (9, 32), (10, 64), (18, 64), (19, 128), (38, 128), (76, 256)])
def test_decimals_are_limited_by_their_bits_not_by_their_digits(digits: int, bits: int) -> None:
    assert bits_of(parse(f"Decimal({digits}, 1)")) == bits
    assert limit_of(parse(f"Nullable(Decimal({digits}, 1))")) == 2 ** (bits - 1)
