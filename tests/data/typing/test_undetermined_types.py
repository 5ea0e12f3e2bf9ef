"""Types that values do not tell."""

from __future__ import annotations

from collections import deque
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aaiclick.data.context import Context
from aaiclick.data.typing.common_types import common_type
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.tabulation import tabulate
from aaiclick.data.typing.undetermined_types import known_as, read_unknown, stored_kind, unknown_kind

WITHIN: list[Any] = []
WITHIN.append(WITHIN)


@pytest.mark.parametrize(
    ("column", "kind", "stored"),
    [
        ([], "Nothing", "UInt8"),
        ([None], "Nullable(Nothing)", "Nullable(UInt8)"),
        ([[], ()], "Array(Nothing)", "Array(UInt8)"),
        ([[], [[], []]], "Array(Array(Nothing))", "Array(Array(UInt8))"),
        ([[None], []], "Array(Nullable(Nothing))", "Array(Nullable(UInt8))"),
        ([{}, {}], "Map(String, Nothing)", "Map(String, UInt8)"),
        ([{"a": []}, {}], "Map(String, Array(Nothing))", "Map(String, Array(UInt8))"),
        ([np.array([]), []], "Array(Nothing)", "Array(UInt8)"),
        ([np.zeros((1, 0)), deque()], "Array(Array(Nothing))", "Array(Array(UInt8))"),
        ([MappingProxyType({})], "Map(String, Nothing)", "Map(String, UInt8)"),
        ([pd.NA, pd.NaT, None], "Nullable(Nothing)", "Nullable(UInt8)"),
        ([np.array([None])], "Array(Nullable(Nothing))", "Array(Nullable(UInt8))"),
    ],
)
def test_what_is_known_and_how_it_is_stored(column: list[Any], kind: str, stored: str) -> None:
    found = unknown_kind(column)
    assert found is not None
    assert (str(found), str(stored_kind(found))) == (kind, stored)
    assert read_unknown(kind) == found
    assert tabulate({"v": column}, {"v": stored}).schema.types == {"v": stored}


TELLING = [[1], [None, 1], [[], [1]], [[], None], [{}, []], [{1: []}], [WITHIN], ["", []], [np.array(5)], [np.int8(1)]]
REFUSED = [[set()], [[], set()], [pa.array([])], [np.timedelta64(1)], [np.longdouble("0.1")]]


@pytest.mark.parametrize("column", [*TELLING, *REFUSED])
def test_the_rest_is_known_or_refused_elsewhere(column: list[Any]) -> None:
    assert unknown_kind(column) is None


@pytest.mark.parametrize(
    ("unknown", "other", "both"),
    [
        ("Nothing", "Array(Int64)", "Array(Int64)"),
        ("Nullable(Nothing)", "Int64", "Nullable(Int64)"),
        ("Nullable(Nothing)", "LowCardinality(String)", "Nullable(String)"),
        ("Array(Nothing)", "Array(Array(String))", "Array(Array(String))"),
        ("Array(Nullable(Nothing))", "Array(Int8)", "Array(Nullable(Int8))"),
        ("Map(String, Nothing)", "Map(String, Int8)", "Map(String, Int8)"),
        ("Nullable(Nothing)", "Array(Int8)", "None"),
        ("Array(Nothing)", "String", "None"),
        ("Array(Nullable(Nothing))", "Array(Array(Int8))", "None"),
    ],
)
def test_others_tell_it(unknown: str, other: str, both: str) -> None:
    assert str(common_type([read_unknown(unknown), parse(other)])) == both
    assert str(common_type([parse(other), read_unknown(unknown)])) == both


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        ([], "Array(Tuple(a Int8, b String))"),
        ([None], "Nullable(String)"),
        ([[], []], "Array(Tuple(a Int8, b String))"),
        ([[[], []], []], "Array(Array(Array(Int8)))"),
        ([[None, None], []], "Array(Nullable(UUID))"),
        ([{}], "Map(String, Array(Int8))"),
        ([{"a": [], "b": [[]]}, {}], "Map(String, Array(Array(Date)))"),
    ],
)
async def test_values_are_the_same_with_the_type_that_was_told(
    context: Context, column: list[Any], wanted: str
) -> None:
    kind = unknown_kind(column)
    assert kind is not None
    rows = await context.create_object_from_value({"value": column}, fields={"value": str(stored_kind(kind))})
    expression = known_as("value", kind, parse(wanted))
    found = await context.client.rows(f"SELECT CAST({expression}, '{wanted}') FROM {rows.table}")
    assert list(found.columns[0]) == column
