"""Python values as tables: shapes, exact types, and refusals that name the row and the column."""

from collections import OrderedDict, deque, namedtuple
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aaiclick.data.typing.schema import Schema
from aaiclick.data.typing.tabulation import conform, tabulate
from aaiclick.errors import InputError


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


Point = namedtuple("Point", "x y")
MOMENT = datetime(2024, 7, 1, 12, 30, 15, 123456, UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def described(
    value: object, fields: dict[str, object] | None = None
) -> tuple[str, dict[str, str], list[dict[str, Any]]]:
    found = tabulate(value, fields)
    return found.schema.shape, found.schema.types, found.data.to_pylist()


@pytest.mark.parametrize(
    ("value", "shape", "types"),
    [
        (5, "scalar", {"value": "Int64"}),
        ("x", "scalar", {"value": "String"}),
        (MOMENT, "scalar", {"value": "DateTime64(6, 'UTC')"}),
        (Level.LOW, "scalar", {"value": "Int64"}),
        ([1, 2], "list", {"value": "Int64"}),
        ((1.5, None), "list", {"value": "Nullable(Float64)"}),
        (range(3), "list", {"value": "Int64"}),
        (deque(["a"]), "list", {"value": "String"}),
        ([[1], []], "list", {"value": "Array(Int64)"}),
        ({"a": 1, "b": "x"}, "record", {"a": "Int64", "b": "String"}),
        ({"a": {"x": 1.5}}, "record", {"a": "Map(String, Float64)"}),
        ({"a": [1], "b": ("x",)}, "table", {"a": "Int64", "b": "String"}),
        (OrderedDict(b=[1], a=[2]), "table", {"b": "Int64", "a": "Int64"}),
        ([{"a": 1}, {"b": "x"}], "table", {"a": "Nullable(Int64)", "b": "Nullable(String)"}),
        (np.arange(3, dtype="uint8"), "list", {"value": "UInt8"}),
        (np.float32(1.5), "scalar", {"value": "Float64"}),
        (np.array([[1.5, 2.5]]), "list", {"value": "Array(Float64)"}),
        (np.array([(1, "x")], dtype=[("a", "i4"), ("b", "U3")]), "table", {"a": "Int32", "b": "String"}),
        ({"a": np.array([1, 2]), "b": pd.Series(["x", None])}, "table", {"a": "Int64", "b": "Nullable(String)"}),
        (pa.table({"a": [1, None]}), "table", {"a": "Nullable(Int64)"}),
        (pa.record_batch({"a": ["x"]}), "table", {"a": "String"}),
        (pa.array([1, 2]), "list", {"value": "Int64"}),
        (pa.scalar(1.5), "scalar", {"value": "Float64"}),
        (pd.DataFrame({"a": [1], "b": ["x"]}), "table", {"a": "Int64", "b": "String"}),
        (pd.DataFrame({"a": [1]}, index=pd.Index(["x"], name="key")), "table", {"key": "String", "a": "Int64"}),
        (pd.Series([1, None], dtype="Int64"), "list", {"value": "Nullable(Int64)"}),
        (pd.Series(["a", "b"], dtype="category"), "list", {"value": "LowCardinality(String)"}),
        (pl.DataFrame({"a": [1], "b": ["x"]}), "table", {"a": "Int64", "b": "String"}),
        (pl.Series(["x", None]), "list", {"value": "Nullable(String)"}),
    ],
    ids=lambda part: ascii(part)[:30],
)
def test_a_value_has_a_shape_and_types(value: object, shape: str, types: dict[str, str]) -> None:
    assert described(value)[:2] == (shape, types)


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        ([True, False], "Bool"),
        ([2**63 - 1, -(2**63)], "Int64"),
        ([2**63, 0], "UInt64"),
        ([2**63, -1], "Int256"),
        ([2**64], "Int256"),
        ([1, 2.5], "Float64"),
        ([float("nan"), float("inf")], "Float64"),
        ([b"text"], "String"),
        (["a\0b"], "String"),
        ([date(1900, 1, 1)], "Date32"),
        ([datetime(2024, 1, 1, tzinfo=BERLIN), datetime(2024, 7, 1, tzinfo=BERLIN)], "DateTime64(6, 'Europe/Berlin')"),
        ([datetime(2024, 1, 1, tzinfo=BERLIN), MOMENT], "DateTime64(6, 'UTC')"),
        ([datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2)))], "DateTime64(6, 'UTC')"),
        ([Decimal("1.25"), Decimal("-100")], "Decimal(5, 2)"),
        ([Decimal("1E+3"), 5], "Decimal(4, 0)"),
        ([UUID(int=5), None], "Nullable(UUID)"),
        ([IPv4Address("1.2.3.4")], "IPv4"),
        ([Colour.RED], "String"),
        ([Level.LOW, None], "Nullable(Int64)"),
        ([[1, None], []], "Array(Nullable(Int64))"),
        ([[[1.5]], []], "Array(Array(Float64))"),
        ([np.array([1, 2]), [3]], "Array(Int64)"),
        ([Point(1, 2)], "Array(Int64)"),
        ([np.int64(1), 2], "Int64"),
        ([np.datetime64("2024-01-01"), None], "Nullable(Date32)"),
        ([np.datetime64("2024-01-01T00:00:00.5")], "DateTime64(6)"),
        ([datetime(2024, 1, 1), None], "Nullable(DateTime64(6))"),  # noqa: DTZ001
        ([pd.Timestamp("2024-01-01"), pd.NaT], "Nullable(DateTime64(6))"),
        ([pd.Timestamp("2024-01-01", tz="Europe/Berlin"), pd.NaT], "Nullable(DateTime64(6, 'Europe/Berlin'))"),
        ([pd.NA, 1], "Nullable(Int64)"),
        ([{"a": 1}, {}], "Map(String, Int64)"),
        ([{"a": None, "b": "x"}], "Map(String, Nullable(String))"),
        ([bytearray(b"x")], "String"),
        ([np.str_("x"), "y"], "String"),
    ],
    ids=lambda part: ascii(part)[:30],
)
def test_a_column_has_an_exact_type(column: list[Any], type_: str) -> None:
    assert tabulate({"c": column}).schema.types == {"c": type_}


@pytest.mark.parametrize(
    ("column", "row", "words"),
    [
        ([1, "x"], 1, "cannot be combined"),
        ([1, 2, True], 2, "cannot be combined"),
        (["x", b"y"], 1, "cannot be combined"),
        ([date(2024, 1, 1), MOMENT], 1, "cannot be combined"),
        ([1.5, Decimal(1)], 1, "cannot be combined"),
        ([None, 1, [2]], 2, "cannot be combined"),
        ([2**255], 0, "integer type"),
        ([10**5000], 0, "integer type"),
        ([2**53 + 1, 0.5], 0, "exactly"),
        (["ok", "\ud800"], 1, "surrogate"),
        ([date(2024, 1, 1), date(1800, 1, 1)], 1, "1900-01-01 to 2299-12-31"),
        ([datetime(2024, 1, 1), MOMENT], 1, "began with a time without a zone"),  # noqa: DTZ001
        ([MOMENT, None, datetime(2024, 1, 1)], 2, "began with a time with a zone"),  # noqa: DTZ001
        ([[MOMENT], [datetime(2024, 1, 1)]], 1, "began with a time with a zone"),  # noqa: DTZ001
        ([MOMENT, datetime(2024, 3, 31, 2, 30, tzinfo=BERLIN)], 1, "skip this time"),
        ([MOMENT, datetime(2400, 1, 1, tzinfo=UTC)], 1, "1900 to 2299"),
        ([Decimal(1), Decimal("NaN")], 1, "NaN"),
        ([Decimal("1E+70"), Decimal("1E-10")], 1, "76 digits"),
        ([None, None], 0, "fields="),
        ([[], []], 0, "fields="),
        ([[1], None], 1, "Array cannot be Nullable"),
        ([[1], ["x"]], 1, "cannot be combined"),
        ([[1], [2, "x"], [3]], 1, "cannot be combined"),
        ([{"a": 1}, {5: 1}], 1, "not a text"),
        ([1, object()], 1, "cannot be stored"),
        ([1, {2}], 1, "cannot be stored"),
        ([1, 1j], 1, "cannot be stored"),
        ([timedelta(1)], 0, "cannot be stored"),
        ([np.timedelta64(1, "s")], 0, "cannot be stored"),
        ([pd.Timestamp(1, unit="ns", tz="UTC")], 0, "nanoseconds"),
        ([np.longdouble("0.1")], 0, "digits"),
    ],
    ids=lambda part: ascii(part)[:30] if not isinstance(part, list) else "values",
)
def test_a_bad_value_is_refused_with_row_and_column(column: list[Any], row: int, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        tabulate({"good": [1] * len(column), "bad": column})
    assert f"column bad, row {row} (counted from 0)" in str(refusal.value)
    assert words in str(refusal.value)


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def wide_cycle() -> list[Any]:
    value: list[Any] = []
    value.extend([value] * 10_000)
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "fields="),
        ({}, "no columns"),
        ([{}], "empty"),
        (None, "no type"),
        ({"a": [1, 2], "b": [1]}, "a 2, b 1"),
        ({"a": [1, 2], "b": 5}, "column a is a list and column b is not"),
        ({"a": [], "b": []}, "fields="),
        ({5: [1]}, "must be a text"),
        ({"": 1}, "empty"),
        ({"aai_id": 1}, "reserved"),
        ([{"a": 1}, 5], "row 1"),
        ((n for n in [1]), "list of it"),
        (iter([1]), "list of it"),
        (map(str, [1]), "list of it"),
        ({1, 2}, "sorted"),
        ({"a": {1, 2}}, "sorted"),
        ({"a": iter([1])}, "list of it"),
        (object(), "cannot be stored"),
        (int, "cannot be stored"),
        (cyclic(), "cannot be combined"),
        (wide_cycle(), "contains itself"),
        ([[[[[[[[[[[[[1]]]]]]]]]]]]], "nested deeper"),
        (pa.table({"a": pa.nulls(2)}), "fields="),
        (pa.table([[1], [2]], names=["a", "a"]), "same name"),
        (pa.table({"t": pa.array([1], pa.time32("s"))}), "time of day"),
        (pa.table({"l": pa.array([[1], None])}), "column l, row 1"),
        (pd.DataFrame([[1, 2]]), "must be a text"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "same name"),
        (pd.DataFrame(), "no columns"),
        (pd.DataFrame({"a": [1, "x"]}, dtype=object), "column a, row 1"),
        (pl.DataFrame({"a": [1]}).lazy(), "collect"),
        (pl.DataFrame({"a": [timedelta(1)]}), "duration"),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_a_value_that_is_no_table_is_refused(value: object, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        tabulate(value)
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 700


def test_given_types_go_before_found_ones() -> None:
    assert described([1, 2], {"value": "Int8"})[1] == {"value": "Int8"}
    assert described([], {"value": list[int]}) == ("list", {"value": "Array(Int64)"}, [])
    assert described([], {"a": int, "b": str}) == ("table", {"a": "Int64", "b": "String"}, [])
    assert described({"a": [], "b": []}, {"a": int, "b": str})[2] == []
    assert described([None], {"value": "Nullable(Int8)"})[2] == [{"value": None}]
    assert described([{"a": 1}], {"b": "Nullable(String)"})[2] == [{"a": 1, "b": None}]
    assert described(pa.table({"a": [1]}), {"a": "UInt8"})[1] == {"a": "UInt8"}


@pytest.mark.parametrize(
    ("value", "fields", "words"),
    [
        ([300], {"value": "Int8"}, "column value, row 0"),
        ([1], {"valu": "Int8"}, "Did you mean value"),
        ([1], {"value": "Int7"}, "type of column value"),
        ([{"a": 1}], {"b": "Int8"}, "column b, row 0"),
        (pa.table({"a": [1, 300]}), {"a": "Int8"}, "column a, row 1"),
        (pa.table({"a": [1, None]}), {"a": "Int8"}, "column a, row 1"),
        (np.array([1.0, 1e39]), {"value": "Float32"}, "row 1"),
    ],
)
def test_what_does_not_fit_a_given_type_is_refused(value: object, fields: dict[str, object], words: str) -> None:
    with pytest.raises(InputError) as refusal:
        tabulate(value, fields)
    assert words in str(refusal.value)


SCHEMA = Schema.from_fields({"a": int, "b": "Nullable(String)"})


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ({"b": ["x"], "a": [1]}, [{"a": 1, "b": "x"}]),
        ([{"a": 1}, {"a": 2, "b": "y"}], [{"a": 1, "b": None}, {"a": 2, "b": "y"}]),
        ({"a": 5}, [{"a": 5, "b": None}]),
        ([], []),
        (pa.table({"a": pa.array([1], pa.uint8())}), [{"a": 1, "b": None}]),
        (pl.DataFrame({"a": [1], "b": ["x"]}), [{"a": 1, "b": "x"}]),
        ({"a": [], "b": []}, []),
    ],
    ids=range(7),
)
def test_a_value_conforms_to_a_schema(value: object, rows: list[dict[str, Any]]) -> None:
    found = conform(value, SCHEMA)
    assert found.column_names == ["a", "b"]
    assert found.to_pylist() == rows


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"b": ["x"]}, "'a' is not accepted: it is missing"),
        ({"a": [1], "c": [1]}, "no such column"),
        ([1, 2], "'value' is not accepted"),
        ({"a": ["x"]}, "column a, row 0"),
        ([{"a": 1}, {"b": "x"}], "column a, row 1"),
        (pa.table({"a": [1, None]}), "column a, row 1"),
    ],
)
def test_what_does_not_conform_is_refused(value: object, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        conform(value, SCHEMA)
    assert words in str(refusal.value)
