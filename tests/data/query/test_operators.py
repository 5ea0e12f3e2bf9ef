"""The signs and methods of columns."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from aaiclick.data import Object, col, lit
from aaiclick.data.operations import FUNCTIONS
from aaiclick.errors import InputError


async def test_every_sign_has_its_method(numbers: Object) -> None:
    term = -col("value") + abs(col("value") - 3) * 2
    assert await numbers.with_columns(x=term)["x"].data() == [-1 + 4, -2 + 2, -3 + 0, -4 + 2]


def test_a_column_is_neither_true_nor_false(numbers: Object) -> None:
    with pytest.raises(TypeError, match=r"use & \| ~"):
        bool(numbers > 1)
    with pytest.raises(TypeError, match=r"use & \| ~"):
        bool(col("a"))


def test_what_is_no_function_is_no_attribute(numbers: Object) -> None:
    with pytest.raises(AttributeError, match="uper"):
        _ = numbers.uper  # type: ignore[attr-defined]
    assert not hasattr(numbers, "__array__")
    assert {*FUNCTIONS} <= {*dir(numbers)}


def test_columns_are_hashed_by_what_they_are_not_by_their_values(numbers: Object) -> None:
    assert len({numbers, numbers, copy.copy(numbers)}) == 2


def test_too_many_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="it takes 1 arguments, 2 were given"):
        col("a").upper("b")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="1 to 2"):
        col("a").round(1, 2)  # type: ignore[call-arg]


async def test_a_value_that_does_not_fit_its_type_is_no_cast(numbers: Object) -> None:
    assert await numbers.cast(str).data() == ["1", "2", "3", "4"]
    assert await (~numbers.cast(bool)).data() == [False] * 4
    with pytest.raises(Exception, match="code 70"):
        await (numbers * 100).cast("Int8").data()
    with pytest.raises(InputError, match="Int6"):
        numbers.cast("Int6")


async def test_isin_looks_in_constants_and_in_columns(numbers: Object) -> None:
    assert await numbers.isin([1, 3, 9]).data() == [True, False, True, False]
    assert await numbers.isin({2}).data() == [False, True, False, False]
    assert await numbers.isin(range(3, 100)).data() == [False, False, True, True]
    assert await numbers.isin(numbers.where("value > 2")).data() == [False, False, True, True]
    assert await numbers.isin([]).data() == [False] * 4
    assert await (~numbers.isin([None, 1])).data() == [False, True, True, True]


def test_isin_takes_no_single_text(numbers: Object) -> None:
    with pytest.raises(InputError, match="a text is not a list"):
        numbers.isin("abc")


async def test_numpys_numbers_are_numbers_on_both_sides(numbers: Object) -> None:
    assert await (numbers + np.int64(3)).data() == [4, 5, 6, 7]
    assert await (np.float64(2) * numbers).data() == [2.0, 4.0, 6.0, 8.0]


async def test_a_constant_stands_by_itself(numbers: Object) -> None:
    assert await numbers.with_columns(one=lit(1), text=lit("it's")).limit(1).data() == {
        "value": [1],
        "one": [1],
        "text": ["it's"],
    }
