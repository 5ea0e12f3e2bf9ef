"""Bits of whole numbers beside Python's."""

from __future__ import annotations

import pytest

from aaiclick.data import Context
from aaiclick.errors import DataRefused


async def test_shifts_lose_no_bits(context: Context) -> None:
    made = await context.create_object_from_value([1, 3])
    assert await (made << 61).data() == [2**61, 3 * 2**61]
    for places in (63, 64, 70, -1):
        with pytest.raises(DataRefused):
            await (made << places).data()
    assert await (made << 63).wrapping().data() == [-(2**63), -(2**63)]


async def test_bits_of_different_signs_are_pythons(context: Context) -> None:
    made = await context.create_object_from_value({"a": [-1], "b": [200]}, fields={"a": "Int8", "b": "UInt8"})
    a, b = made["a"], made["b"]
    assert [await each.data() for each in (a & b, a | b, a ^ b, b & -2)] == [[200], [-1], [-201], [200]]
