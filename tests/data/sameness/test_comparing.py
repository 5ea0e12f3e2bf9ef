"""Numbers of different types, compared."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import inf, isfinite, nan
from typing import Any

import pytest

from aaiclick.data import Context
from aaiclick.data.sameness.comparing import compared
from aaiclick.data.typing.grammar import Type, parse

VALUES: dict[str, list[Any]] = {
    "Int8": [-1, 0, 127, None],
    "Int64": [2**62, -(2**63), 1, None],
    "UInt64": [2**64 - 1, 0, 1, None],
    "Int128": [2**127 - 1, -(2**127), 10**17, None],
    "Int256": [2**255 - 1, -(2**255), 2**200 + 1, None],
    "UInt256": [2**256 - 1, 2**255, 1, None],
    "Decimal(9, 2)": [Decimal("1.00"), Decimal("-0.01"), Decimal("9999999.99"), None],
    "Decimal(18, 4)": [Decimal("99999999999999.9999"), Decimal("-99999999999999.9999"), Decimal("255.0001"), None],
    "Decimal(38, 30)": [Decimal(1), Decimal("-99999999.5"), Decimal("1E-30"), None],
    "Decimal(76, 0)": [Decimal(10**76 - 1), Decimal(-(10**75)), Decimal(1), None],
    "Decimal(76, 60)": [Decimal(10**15), Decimal("1E-60"), Decimal(-1), None],
}
FLOATS = [0.0, inf, -inf, nan, 1.0, 2.0**127, -(2.0**127), 2.0**200, 2.0**255, 2.0**256, -(2.0**255), 0.5, None]
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}


def expected(sign: str, a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    return bool(SIGNS[sign](*(Fraction(each) if isfinite(each) else each for each in (a, b))))


@pytest.mark.parametrize("left", VALUES)
async def test_numbers_of_all_types_are_compared_as_python_does(context: Context, left: str) -> None:
    pairs = {right: [(a, b) for a in VALUES[left] for b in values] for right, values in VALUES.items()}
    if "Decimal" not in left:
        pairs["Float64"] = [(a, b) for a in VALUES[left] for b in FLOATS]
        pairs["Float32"] = [(a, b) for a, b in pairs["Float64"] if b is None or not 2.0**127 < abs(b) < inf]
    wrong = []
    for right, both in pairs.items():
        rows = await context.create_object_from_value(
            {"a": [a for a, _ in both], "b": [b for _, b in both]},
            fields={"a": f"Nullable({left})", "b": f"Nullable({right})"},
        )
        asked = {sign: compare(rows["a"], rows["b"]) for sign, compare in SIGNS.items()}
        asked |= {f"{sign} back": compare(rows["b"], rows["a"]) for sign, compare in SIGNS.items()}
        found = await rows.select(**asked).data()
        for name, values in found.items():
            sign, _, back = name.partition(" ")
            wanted = [expected(sign, *((b, a) if back else (a, b))) for a, b in both]
            if values != wanted:
                wrong.append((right, name, [x for x in zip(both, values, wanted, strict=True) if x[1] != x[2]][:2]))
    assert wrong == []


BEYOND_DIGITS = {  # ClickHouse lets decimals have more digits than their types say
    "Decimal(9, 2)": "reinterpret(toInt32({}), 'Decimal(9, 2)')",
    "Decimal(18, 4)": "reinterpret(toInt64({}), 'Decimal(18, 4)')",
    "Int64": "toInt64({})",
    "UInt64": "toUInt64({})",
}
ENDS = {"Decimal(9, 2)": [-(2**31), 2**31 - 1], "Decimal(18, 4)": [-(2**63), 2**63 - 1]}
ENDS |= {"Int64": [-(2**63), 2**63 - 1], "UInt64": [0, 2**64 - 1]}


async def test_decimals_with_more_digits_than_their_type_says_are_compared(context: Context) -> None:
    def exactly(kind: str, number: int) -> Fraction:
        return Fraction(number, 10 ** parse(kind).numbers[1] if "Decimal" in kind else 1)

    for one, other in product(ENDS, repeat=2):
        words = compared("<")([parse(one), parse(other)])
        for a, b in product(ENDS[one], ENDS[other]):
            texts = [BEYOND_DIGITS[one].format(a), BEYOND_DIGITS[other].format(b)]
            text = words.sql.format(*texts) if words else f"{texts[0]} < {texts[1]}"
            found = (await context.client.rows(f"SELECT toUInt8({text}) AS x")).columns[0][0]
            assert int(found) == (exactly(one, a) < exactly(other, b)), (one, a, other, b)


def test_a_comparison_is_as_narrow_as_its_values() -> None:
    price, byte, wide = Type("Decimal", numbers=(15, 2)), Type("UInt8"), Type("Decimal", numbers=(76, 2))
    assert _sql("<", [price, byte]) == "toBool({0} < toDecimal64({1}, 2))"
    assert _sql("<", [Type("Decimal", numbers=(38, 2)), Type("Int64")]) == "toBool({0} < toDecimal128({1}, 2))"
    assert "if(" in _sql("<", [wide, Type("Decimal", numbers=(76, 6))])
    known = compared("<", [10**70, None])([wide, Type("Decimal", numbers=(76, 6))])
    assert known is not None
    assert known.sql == "toBool(toDecimal256({0}, 6) < {1})"


def _sql(sign: str, kinds: list[Type]) -> str:
    found = compared(sign)(kinds)
    assert found is not None
    return found.sql
