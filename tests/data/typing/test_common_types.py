"""The type that holds the values of several types."""

from __future__ import annotations

import itertools

import pytest

from aaiclick.data.typing.common_types import common_type
from aaiclick.data.typing.grammar import parse


@pytest.mark.parametrize(
    ("kinds", "found"),
    [
        (["Int64"], "Int64"),
        (["Int64", "Int64"], "Int64"),
        (["Int64", "Float64"], "Float64"),
        (["Int8", "Float32"], "Float64"),
        (["Float32", "Float64"], "Float64"),
        (["Int8", "Int32"], "Int32"),
        (["UInt8", "UInt64"], "UInt64"),
        (["Int64", "UInt8"], "Int64"),
        (["Int64", "UInt64"], "Int128"),
        (["Int8", "UInt256"], None),
        (["Int64", "Nullable(Int64)"], "Nullable(Int64)"),
        (["Nullable(Int64)", "Float64"], "Nullable(Float64)"),
        (["Decimal(10, 2)", "Decimal(6, 4)"], "Decimal(12, 4)"),
        (["Decimal(6, 4)", "Int64"], "Decimal(24, 4)"),
        (["Decimal(76, 70)", "Int256"], None),
        (["String", "LowCardinality(String)"], "String"),
        (["LowCardinality(String)", "LowCardinality(Nullable(String))"], "LowCardinality(Nullable(String))"),
        (["FixedString(3)", "String"], "String"),
        (["Date", "Date32"], "Date32"),
        (["DateTime", "DateTime64(6)"], "DateTime64(6)"),
        (["DateTime('UTC')", "DateTime64(6, 'UTC')"], "DateTime64(6, 'UTC')"),
        (["DateTime", "DateTime64(6, 'UTC')"], None),
        (["DateTime64(3, 'UTC')", "DateTime64(6, 'Europe/Rome')"], "DateTime64(6, 'UTC')"),
        (["Array(Int64)", "Array(Nullable(Float64))"], "Array(Nullable(Float64))"),
        (["Map(String, Int64)", "Map(String, Float64)"], "Map(String, Float64)"),
        (["Tuple(a Int64, b String)", "Tuple(a Float64, b String)"], "Tuple(a Float64, b String)"),
        (["Tuple(a Int64)", "Tuple(b Int64)"], None),
        (["Int64", "String"], None),
        (["Bool", "Int64"], None),
        (["Array(Int64)", "Int64"], None),
        (["Array(Int64)", "Array(String)"], None),
        (["Int64", "String", "Int64"], None),
    ],
)
def test_the_type_does_not_depend_on_the_order(kinds: list[str], found: str | None) -> None:
    for order in itertools.permutations(kinds):
        united = common_type(map(parse, order))
        assert (None if united is None else str(united)) == found


def test_numbers_of_one_part_may_be_missing_in_another() -> None:
    assert str(common_type(map(parse, ["Int64", "Nullable(Float64)", "Int64"]))) == "Nullable(Float64)"
