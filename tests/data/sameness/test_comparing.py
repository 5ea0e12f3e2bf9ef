"""Numbers of different types, compared."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nan
from typing import Any

import pytest

from aaiclick.data import Context

VALUES: dict[str, list[Any]] = {
    "Int8": [-1, 0, 127, None],
    "Int64": [2**62, -(2**63), 1, None],
    "UInt64": [2**64 - 1, 0, 1, None],
    "Int128": [2**127 - 1, -(2**127), 10**17, None],
    "Int256": [2**255 - 1, -(2**255), 2**200 + 1, None],
    "UInt256": [2**256 - 1, 2**255, 1, None],
    "Decimal(9, 2)": [Decimal("1.00"), Decimal("-0.01"), Decimal("9999999.99"), None],
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
