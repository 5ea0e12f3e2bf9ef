"""Values that stand for others."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.data import Context, col
from aaiclick.errors import InputError


@pytest.mark.parametrize(
    ("given", "mapping", "default"),
    [
        (["a", None, "b"], {"a": 1, None: 2}, None),
        (["a", None, "b"], {"a": 1}, 0),
        ([1, 2, None], {1: "x", 2: "it's {0}"}, "else"),
        ([1.5, 2.0], {2: True}, False),
        ([2**63, 1], {2**63: "big"}, None),
    ],
)
async def test_values_are_mapped_as_by_a_dict(context: Context, given: Any, mapping: Any, default: Any) -> None:
    made = await context.create_object_from_value(given)
    assert await made.map_values(mapping, default).data() == [mapping.get(value, default) for value in given]


async def test_values_are_replaced_and_the_others_stay(context: Context) -> None:
    made = await context.create_object_from_value(["a", None, "b"])
    assert await made.replace_values({"a": "z", None: "n"}).data() == ["z", "n", "b"]
    assert await made.replace_values({"a": None}).data() == [None, None, "b"]
    numbers = await context.create_object_from_value([1, 2])
    assert await (numbers.replace_values({1: 10}) + 1).data() == [11, 3]
    assert await (~numbers.map_values({1: True}, False)).data() == [False, True]
    terms = await context.create_object_from_value({"a": ["x", "y"], "b": ["p", "q"]})
    assert await terms.select(c=col("a").replace_values({"x": col("b")})).data() == {"c": ["p", "y"]}


@pytest.mark.parametrize("mapping", [{}, [], dict.fromkeys(range(501), 1), None])
def test_what_is_no_mapping_is_refused(mapping: Any) -> None:
    with pytest.raises(InputError, match="mapping"):
        col("a").map_values(mapping)


async def test_what_is_filled_for_nan_is_a_float_beside_long_numbers(context: Context) -> None:
    made = await context.create_object_from_value({"a": [1.5, float("nan")], "b": [2, 3]}, fields={"b": "Int256"})
    assert await (made["a"].fill_nan(0.5) + made["b"]).data() == [3.5, 3.5]
