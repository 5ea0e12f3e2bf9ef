"""How large numbers can be, beside what ClickHouse holds."""

from __future__ import annotations

import pytest

from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.limits import bits_of, limit_of


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
