"""Arrow columns of other makers: whatever their encoding, chunks and slices, they arrive exactly or are refused."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from aaiclick.data.typing.arrow_casts import fit, kind_of_data
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.inference import Unfit

MOMENT = datetime(2024, 7, 1, 12, 30, 15, 123456, UTC)
PAIRS = pa.array([[("a", 1)], [("b", 2), ("c", None)], []], pa.map_(pa.string(), pa.int64()))
STRUCTS = pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}])


def chunked(*chunks: Any) -> pa.ChunkedArray:
    return pa.chunked_array(list(chunks))


@pytest.mark.parametrize(
    ("given", "type_", "expected"),
    [
        (pa.array([1, None]), "Nullable(Int64)", [1, None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), "LowCardinality(Nullable(String))", ["a", None, "a"]),
        (pa.DictionaryArray.from_arrays([0, 1], ["a", None]), "LowCardinality(Nullable(String))", ["a", None]),
        (pa.array([1, 1]).dictionary_encode(), "Int64", [1, 1]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], [7, 8]), "Int64", [7, 7, 8]),
        (pa.array(["a", "b"], pa.string_view()), "String", ["a", "b"]),
        (pa.array([[1], [2, 3]]).slice(1), "Array(Int64)", [[2, 3]]),
        (pa.array([[1, None], []], pa.large_list(pa.int8())), "Array(Nullable(Int8))", [[1, None], []]),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), "Array(Int8)", [[1, 2]]),
        (pa.array([[1], [2, 3]], pa.list_view(pa.int8())), "Array(Int8)", [[1], [2, 3]]),
        (PAIRS, "Map(String, Nullable(Int64))", [[("a", 1)], [("b", 2), ("c", None)], []]),
        (PAIRS.slice(0, 1), "Map(String, Int64)", [[("a", 1)]]),
        (STRUCTS, "Tuple(a Int64, b Nullable(String))", [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        (STRUCTS.slice(0, 1), "Tuple(a Int64, b String)", [{"a": 1, "b": "x"}]),
        (pa.array([MOMENT.replace(tzinfo=None)]), "DateTime64(6)", [MOMENT.replace(tzinfo=None)]),
        (pa.array([MOMENT]), "DateTime64(6, 'UTC')", [MOMENT]),
        (pa.array([date(2024, 1, 2)], pa.date64()), "Date32", [date(2024, 1, 2)]),
        (pa.array([1.5], pa.float16()), "Float32", [1.5]),
        (pa.array([b"abc"], pa.binary(3)), "FixedString(3)", [b"abc"]),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_column_is_kept_whatever_its_encoding(given: Any, type_: str, expected: list[Any]) -> None:
    column = chunked(given)
    if type_ != "Map(String, Int64)":  # the null of another slice is seen too
        assert str(kind_of_data(column)) == type_
    assert fit(column, parse(type_)).to_pylist() == expected


@pytest.mark.parametrize(
    ("given", "type_", "expected"),
    [
        (pa.array([1, 2]), "UInt8", [1, 2]),
        (pa.array([1.0, 2.0]), "Int8", [1, 2]),
        (pa.array([True]), "UInt8", [1]),
        (pa.array([1, 2]), "Float32", [1.0, 2.0]),
        (pa.array([1, 2]), "Decimal(5, 2)", [Decimal(1), Decimal(2)]),
        (pa.array([Decimal("1.50")]), "Decimal(5, 1)", [Decimal("1.5")]),
        (pa.array([10, 20], pa.uint32()), "DateTime('UTC')", [datetime.fromtimestamp(n, UTC) for n in (10, 20)]),
        (pa.array([1], pa.int8()), "Enum8('a' = 1)", [1]),
        (pa.array(["a"]), "Enum8('a' = 1)", [1]),
        (pa.array([{"b": 1, "a": 2}]), "Tuple(a Int8, b Int8)", [{"a": 2, "b": 1}]),
        (pa.array([{"x": 1, "y": 2}]), "Tuple(Int8, Int8)", [{"1": 1, "2": 2}]),
        (pa.array([b"x"]), "String", [b"x"]),
        (pa.array([], pa.int64()), "String", []),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_a_column_is_cast_exactly(given: Any, type_: str, expected: list[Any]) -> None:
    assert fit(chunked(given), parse(type_)).to_pylist() == expected


NANOS = pa.array(np.array(["2024-01-01T00:00:00.000000000", "2024-01-01T00:00:00.000000001"], dtype="datetime64[ns]"))


@pytest.mark.parametrize(
    ("given", "type_", "row"),
    [
        (pa.array([1, 300]), "Int8", 1),
        (pa.array([1, None]), "Int64", 1),
        (pa.array([0.5]), "Int64", 0),
        (pa.array([1.0, 1e300]), "Float32", 1),
        (pa.array([2**53 + 1]), "Float64", 0),
        (pa.array(["x"]), "Int64", 0),
        (pa.array([Decimal("1.25")]), "Decimal(5, 1)", 0),
        (NANOS, "DateTime64(6)", 1),
        (NANOS, "DateTime64(8)", 1),
        (NANOS, "DateTime64(9, 'UTC')", 0),
        (pa.array([[], [MOMENT]]), "Array(DateTime64(6))", 1),
        (pa.array([0, 2**33], pa.timestamp("s")), "DateTime", 1),
        (pa.array([0, 2**40], pa.timestamp("s")), "DateTime64(3)", 1),
        (pa.array([0, -(2**62)], pa.timestamp("ns")), "DateTime64(3)", 1),
        (pa.array([0, 200_000], pa.date32()), "Date32", 1),
        (pa.array([[1], [2, 300]]), "Array(Int8)", 1),
        (pa.array([[1], [2, None]]), "Array(Int8)", 1),
        (pa.array([[1], None]), "Array(Int8)", 1),
        (PAIRS, "Map(String, Int64)", 1),
        (STRUCTS, "Tuple(a Int64, b String)", 1),
        (STRUCTS, "Tuple(a Int64, c String)", 0),
        (pa.array([b"abcd"], pa.binary(4)), "FixedString(3)", 0),
        (pa.array([7], pa.int8()), "Enum8('a' = 1)", 0),
        (pa.array([0, 86_400_005], pa.date64()), "Date32", 1),
        (pa.array([b"fine", b"\xff"]), "String", 1),
        (pa.array([b"ab", b"\xff\0"], pa.binary(2)), "String", 1),
        (pa.array([[b"fine"], [b"\xff"]], pa.list_(pa.large_binary())), "Array(String)", 1),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_does_not_fit_is_refused_with_its_row(given: Any, type_: str, row: int) -> None:
    with pytest.raises(Unfit) as refusal:
        fit(chunked(given), parse(type_))
    assert refusal.value.row == row
    with pytest.raises(Unfit) as refusal:
        fit(pa.chunked_array([given.slice(0, 0), given.slice(0, 1)[:row], given[row:]]), parse(type_))
    assert refusal.value.row == row


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        (pl.Series(["a", "b"], dtype=pl.Categorical), "LowCardinality(String)"),
        (pl.Series([[1], [2]]), "Array(Int64)"),
        (pl.Series([{"a": 1}]), "Tuple(a Int64)"),
        (pl.Series([MOMENT]), "DateTime64(6, 'UTC')"),
        (pl.Series([Decimal("1.25")]), "Decimal(38, 2)"),
        (pl.Series([b"x"]), "String"),
        (pl.Series([date(2024, 1, 1), None]), "Nullable(Date32)"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_frames_of_others_have_types(given: Any, type_: str) -> None:
    column = pa.chunked_array(given)
    assert str(kind_of_data(column)) == type_
    assert fit(column, parse(type_)).to_pylist() == column.to_pylist()
