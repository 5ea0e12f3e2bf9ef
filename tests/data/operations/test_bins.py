"""Ranges between edges."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import InputError

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


async def test_an_edge_belongs_to_one_side(context: Context) -> None:
    made = await context.create_object_from_value([-1, 0, 5, 18, 70, None])
    below, inside, above = "(-inf, 0]", "(0, 18]", "(18, inf)"
    assert await made.cut([0, 18]).data() == [below, below, inside, inside, above, None]
    assert await made.cut([0, 18], ["a", "b", "c"], right=False).data() == ["a", "b", "b", "c", "c", None]
    assert await made.cut([0, 18], [None, "it's {0}", None]).data() == [None, None, "it's {0}", "it's {0}", None, None]


@pytest.mark.parametrize(
    ("values", "edge", "expected"),
    [
        ([0.0, -0.0, 0.5, nan, inf, -inf], 0.0, ["a", "a", "b", None, "b", "a"]),
        ([Decimal("1.10"), Decimal("1.11")], Decimal("1.1"), ["a", "b"]),
        (["Bonn", "Rome"], "Oslo", ["a", "b"]),
        (
            [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)],
            datetime(2024, 1, 1, tzinfo=UTC),
            ["a", "b"],
        ),
        ([2**63 - 1, 2**63 - 2], 2**63 - 2, ["b", "a"]),
    ],
)
async def test_values_of_many_types_are_cut(
    context: Context, values: list[Any], edge: Any, expected: list[Any]
) -> None:
    made = await context.create_object_from_value(values)
    assert await made.cut([edge], ["a", "b"]).data() == expected


@pytest.mark.parametrize("edges", [[], [2, 1], [1, 1], [None], [nan], "ab", [1, "a"]])
def test_edges_rise(edges: Any) -> None:
    with pytest.raises(InputError, match="edge"):
        col("x").cut(edges)


def test_there_is_a_label_for_each_range() -> None:
    with pytest.raises(InputError, match="4 texts"):
        col("x").cut([1, 2, 3], ["inside"])
