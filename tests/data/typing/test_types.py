"""What Python's and Arrow's types become in ClickHouse, and what Arrow carries there."""

import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any, Optional
from uuid import UUID

import pyarrow as pa
import pytest

from aaiclick.data.typing.types import (
    arrow_of,
    clock_of_type,
    has_naive,
    is_nullable,
    kind_of_arrow,
    read_kind,
    read_type,
)
from aaiclick.errors import InputError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (int, "Int64"),
        (float, "Float64"),
        (str, "String"),
        (bool, "Bool"),
        (bytes, "String"),
        (date, "Date32"),
        (datetime, "DateTime64(6, 'UTC')"),
        (Decimal, "Decimal(38, 10)"),
        (UUID, "UUID"),
        (IPv4Address, "IPv4"),
        (list[int], "Array(Int64)"),
        (list[list[str | None]], "Array(Array(Nullable(String)))"),
        (int | None, "Nullable(Int64)"),
        (Optional[str], "Nullable(String)"),  # noqa: UP045
        (dict[str, float], "Map(String, Float64)"),
        (tuple[int, str], "Tuple(Int64, String)"),
        (tuple[int, ...], "Array(Int64)"),
        ("uint8", "UInt8"),
    ],
)
def test_a_python_type_has_a_clickhouse_type(given: object, expected: str) -> None:
    assert read_type(given) == expected


@pytest.mark.parametrize(
    "given", [list, dict, object, int | str, list[int] | None, None, 5, set[int], complex, b"Int64", []]
)
def test_other_python_types_are_refused(given: object) -> None:
    with pytest.raises(InputError):
        read_type(given)


def test_a_type_tells_whether_it_can_be_null() -> None:
    assert is_nullable("Nullable(Int8)")
    assert is_nullable("LowCardinality(Nullable(String))")
    assert not is_nullable("Array(Nullable(Int8))")


def test_a_type_tells_whether_its_times_have_a_zone() -> None:
    assert clock_of_type("Nullable(DateTime64(6))") == clock_of_type("Array(DateTime)") == "naive"
    assert clock_of_type("Map(String, DateTime('UTC'))") == "aware"
    assert clock_of_type("Date32") == clock_of_type("of the future") == ""
    assert has_naive("Tuple(DateTime, DateTime('UTC'))")
    assert not has_naive("DateTime('UTC')")
    assert not has_naive("of the future")


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("Bool", pa.bool_()),
        ("Int8", pa.int8()),
        ("UInt64", pa.uint64()),
        ("Int128", pa.binary(16)),
        ("UInt256", pa.binary(32)),
        ("Float32", pa.float32()),
        ("LowCardinality(Nullable(String))", pa.string()),
        ("FixedString(7)", pa.binary(7)),
        ("Date", pa.date32()),
        ("DateTime('Europe/Berlin')", pa.timestamp("s", "UTC")),
        ("DateTime64(4)", pa.timestamp("us")),
        ("DateTime", pa.timestamp("s")),
        ("DateTime64(9, 'UTC')", pa.timestamp("ns", "UTC")),
        ("Decimal(38, 3)", pa.decimal128(38, 3)),
        ("Decimal(39, 3)", pa.decimal256(39, 3)),
        ("UUID", pa.string()),
        ("IPv4", pa.uint32()),
        ("IPv6", pa.binary(16)),
        ("Enum8('a' = 1)", pa.int8()),
        ("Enum16('a' = 1)", pa.int16()),
        ("Array(Nullable(Int8))", pa.list_(pa.int8())),
        ("Map(String, Date32)", pa.map_(pa.string(), pa.date32())),
        ("Tuple(Int8, String)", pa.struct([("1", pa.int8()), ("2", pa.string())])),
        ("Tuple(a Int8, b String)", pa.struct([("a", pa.int8()), ("b", pa.string())])),
    ],
)
def test_a_type_travels_as_an_arrow_type(type_: str, expected: pa.DataType) -> None:
    assert arrow_of(read_kind(type_)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (pa.bool_(), "Bool"),
        (pa.int16(), "Int16"),
        (pa.uint64(), "UInt64"),
        (pa.float16(), "Float32"),
        (pa.float64(), "Float64"),
        (pa.large_string(), "String"),
        (pa.string_view(), "String"),
        (pa.large_binary(), "String"),
        (pa.binary(16), "FixedString(16)"),
        (pa.binary(1000), "String"),
        (pa.date32(), "Date32"),
        (pa.date64(), "Date32"),
        (pa.timestamp("us"), "DateTime64(6)"),
        (pa.timestamp("s", "Europe/Berlin"), "DateTime64(0, 'Europe/Berlin')"),
        (pa.timestamp("ns", "+02:00"), "DateTime64(9, 'UTC')"),
        (pa.decimal128(10, 2), "Decimal(10, 2)"),
        (pa.decimal128(10, -2), "Decimal(12, 0)"),
        (pa.decimal256(76, 5), "Decimal(76, 5)"),
        (pa.uuid(), "UUID"),
        (pa.dictionary(pa.int8(), pa.string()), "LowCardinality(String)"),
        (pa.dictionary(pa.int8(), pa.int64()), "Int64"),
        (pa.list_(pa.field("item", pa.int64(), nullable=False)), "Array(Int64)"),
        (pa.large_list(pa.int64()), "Array(Nullable(Int64))"),
        (pa.list_(pa.float32(), 3), "Array(Nullable(Float32))"),
        (pa.struct([pa.field("a b", pa.int8(), nullable=False)]), "Tuple(`a b` Int8)"),
        (pa.map_(pa.string(), pa.int8()), "Map(String, Nullable(Int8))"),
    ],
)
def test_an_arrow_type_has_a_clickhouse_type(given: pa.DataType, expected: str) -> None:
    assert str(kind_of_arrow(given, False)) == expected


def test_a_nullable_arrow_field_becomes_nullable() -> None:
    assert str(kind_of_arrow(pa.int8(), True)) == "Nullable(Int8)"
    assert str(kind_of_arrow(pa.dictionary(pa.int8(), pa.string()), True)) == "LowCardinality(Nullable(String))"
    assert str(kind_of_arrow(pa.list_(pa.field("item", pa.int8(), nullable=False)), True)) == "Array(Int8)"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pa.null(), "fields="),
        (pa.list_(pa.null()), "fields="),
        (pa.time32("s"), "time of day"),
        (pa.time64("us"), "time of day"),
        (pa.duration("s"), "duration"),
        (pa.month_day_nano_interval(), "no ClickHouse type"),
        (pa.struct([]), "no ClickHouse type"),
        (pa.dense_union([pa.field("a", pa.int8())]), "no ClickHouse type"),
    ],
)
def test_other_arrow_types_are_refused(given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        kind_of_arrow(given, False)


def test_importing_does_not_load_arrow() -> None:
    typing = "from aaiclick.data.typing import schema, tabulation, types"
    modules = "aaiclick.data.display"
    heavy = "'pyarrow', 'numpy', 'pandas', 'polars'"
    code = f"import sys, {modules}; {typing}; assert not sys.modules.keys() & {{{heavy}}}"
    subprocess.run([sys.executable, "-c", code], check=True)
