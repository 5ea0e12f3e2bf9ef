"""Texts that are types or nearly so, and values that are kept, refused or changed on their way into a table."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

CHOSEN = (
    # plain, and spelled otherwise
    *("Int8", "UInt256", "Float32", "Bool", "String", "Date32", "UUID", "IPv6", "int64", "STRING", " Int64 ", "bool"),
    *("INT", "BIGINT", "TEXT", "VARCHAR(10)", "DOUBLE", "TIMESTAMP", "BOOLEAN", "DECIMAL(9, 2)", "Decimal64(4)"),
    *("nullable(string)", "Array( array(int8) )", "fixedstring(3)", "DATETIME", "DateTime64", "decimal(10)"),
    *("lowcardinality(nullable(String))", "map(string,array(uint64))", "Decimal(76,76)", "Decimal", "Decimal32(2)"),
    # zones and members
    *("DateTime('Europe/Berlin')", "datetime64(6,'UTC')", "DateTime('Mars/Olympus')", "DateTime('')", "DateTime64(10)"),
    *("DateTime64(6, UTC)", "DateTime('../../etc/passwd')", "DateTime('utc')", "DateTime64(-1)", "DateTime64('UTC')"),
    *("Enum8('b' = 2, 'a'=-1)", "enum('a', 'b')", "Enum('a' = 1, 'b' = 500)", "Enum8('a' = 200)", "Enum8()"),
    *(r"Enum8('it\'s' = 1, 'two''s' = 2)", r"Enum8('back\\' = 1)", "Enum8('a,b' = 1, ')' = 2)", "Enum8('' = 0)"),
    *("Enum8('a' = 1, 'a' = 2)", "Enum8('a' = 1, 'b' = 1)", "Enum8('a' = )", "Enum16('a' = 40000)", "Enum8('a')"),
    *("Enum8('= 5' = 1)", "Enum8('é\\n' = -128)", "Enum8('a' = 1,)"),
    # numbers
    *("Decimal(77, 1)", "Decimal(0, 0)", "Decimal(5, 6)", "Decimal(9, -1)", "FixedString(0)", "FixedString(-1)"),
    *("FixedString", "FixedString(99999999)", "FixedString('3')", "Int65", "Int", "UInt", "Float16", "BFloat16"),
    # nested
    *("Nullable(Array(Int8))", "Nullable(Nullable(Int8))", "Nullable(LowCardinality(String))", "Array()", "Array"),
    *(
        "LowCardinality(Array(String))",
        "LowCardinality(Decimal(9, 2))",
        "LowCardinality(Int8)",
        "Array(Int64",
        "Int64)",
    ),
    *("Map(Nullable(String), Int8)", "Map(String)", "Map(Array(Int8), Int8)", "Map(Float64, Int8)", "Nullable()"),
    *("Tuple(Int64, String)", "Tuple(a Int64, `b c` Array(String))", "Tuple(`a``b` Int8)", "Tuple()", "Tuple"),
    *("Tuple(a Int8, String)", "Tuple(a Int8, a Int8)", "Tuple(`null` Int8)", "Tuple(select Int8)", "Tuple(a b Int8)"),
    *("Array(" * 15 + "Int8" + ")" * 15, "Array(" * 30 + "Int8" + ")" * 30, "Array(Tuple(a Nullable(Int8)))"),
    # others' and no types
    *("JSON", "Dynamic", "Variant(Int8, String)", "Nested(a Int8)", "Point", "Nothing", "Time", "Time64(3)"),
    *("Nullable(Nothing)", "SimpleAggregateFunction(sum, UInt64)", "AggregateFunction(uniq, String)", "IntervalDay"),
    *("", " ", "Strin", "text", "Int64; DROP TABLE x", "Int64 DEFAULT 1", "Int64 -- x", "Int64, Int8", "(Int64)"),
    *("Int64 NULL", "Int64 CODEC(ZSTD)", "`Int64`", '"Int64"', "Decimal(٣, 1)", "Int64\0", "Array(Int64))", "Int 64"),
)

BERLIN = ZoneInfo("Europe/Berlin")
NAIVE = datetime(2024, 7, 1, 12, tzinfo=UTC).replace(tzinfo=None)
MOMENT = datetime(2024, 7, 1, 12, 30, 15, 123456, tzinfo=UTC)

VALUES: dict[str, tuple[list[Any], str]] = {
    "whole numbers": ([1, -2], "Int64"),
    "2**63": ([2**63, 1], "UInt64"),
    "2**64": ([2**64, 1], "UInt128"),
    "-1 and 2**63": ([-1, 2**63], "Int128"),
    "2**127": ([2**127, -1], "Int256"),
    "300 into Int8": ([1, 300], "Int8"),
    "-1 into UInt8": ([1, -1], "UInt8"),
    "whole number and float": ([1, 2.5], "Float64"),
    "2**53 + 1 and float": ([2**53 + 1, 0.5], "Float64"),
    "float into Int64": ([1.5], "Int64"),
    "truths": ([True, False], "Bool"),
    "truth among numbers": ([1, True, 2], "Int64"),
    "truth among floats": ([1.5, True], "Float64"),
    "number among truths": ([True, 0], "Bool"),
    "None among numbers": ([None, 1], "Nullable(Int64)"),
    "None, type not Nullable": ([None, 1], "Int64"),
    "None among 2**63 - 1": ([None, 2**63 - 1], "Nullable(Int64)"),
    "None among truths": ([None, True], "Nullable(Bool)"),
    "None among texts": ([None, ""], "Nullable(String)"),
    "NaN": ([math.nan, 1.0], "Float64"),
    "NaN and None": ([math.nan, None], "Nullable(Float64)"),
    "NaN and whole number": ([math.nan, 2**53 + 1], "Float64"),
    "-0.0 and infinity": ([-0.0, math.inf], "Float64"),
    "decimals": ([Decimal("1.10"), Decimal("2.345")], "Decimal(9, 3)"),
    "decimals of many digits": ([Decimal("1e-30"), Decimal("1e30")], "Decimal(76, 30)"),
    "decimal cut": ([Decimal("1.005")], "Decimal(9, 2)"),
    "decimal too large": ([Decimal("12345678")], "Decimal(9, 2)"),
    "decimal NaN": ([Decimal("NaN")], "Decimal(9, 2)"),
    "decimal and number": ([Decimal("1.5"), 2**62], "Decimal(38, 2)"),
    "decimal and float": ([Decimal("1.5"), 0.1], "Decimal(9, 2)"),
    "float into Decimal": ([0.1], "Decimal(9, 2)"),
    "texts": (["a", "é👍"], "String"),
    "text with \\0": (["a\0b"], "String"),
    "text and number": (["a", 1], "String"),
    "half a pair": (["\ud800"], "String"),
    "bytes": ([b"\xff\x00"], "String"),
    "text and bytes": (["a", b"b"], "String"),
    "too long for FixedString": (["abcd"], "FixedString(3)"),
    "days": ([date(2024, 2, 29), date(1960, 1, 1)], "Date32"),
    "day 1960 into Date": ([date(1960, 1, 1)], "Date"),
    "day of the year 1": ([date(1, 1, 1)], "Date32"),
    "day of the year 9999": ([date(9999, 12, 31)], "Date32"),
    "moment in UTC": ([MOMENT], "DateTime64(6, 'UTC')"),
    "moment in a zone": ([MOMENT.astimezone(BERLIN)], "DateTime64(6, 'Europe/Berlin')"),
    "moments in two zones": ([MOMENT.astimezone(BERLIN), MOMENT], "DateTime64(6, 'UTC')"),
    "moment at an offset": ([MOMENT.astimezone(timezone(timedelta(hours=5.5)))], "DateTime64(6, 'UTC')"),
    "moment of 1960": ([datetime(1960, 1, 1, 1, tzinfo=UTC)], "DateTime64(6, 'UTC')"),
    "moment of the year 1": ([datetime(1, 1, 1, tzinfo=UTC)], "DateTime64(6, 'UTC')"),
    "microseconds into DateTime": ([MOMENT], "DateTime('UTC')"),
    "moment of 1960 into DateTime": ([datetime(1960, 1, 1, tzinfo=UTC)], "DateTime('UTC')"),
    "naive time": ([NAIVE], "DateTime64(6, 'UTC')"),
    "naive and aware": ([NAIVE, MOMENT], "DateTime64(6, 'UTC')"),
    "day and moment": ([date(2024, 7, 1), MOMENT], "DateTime64(6, 'UTC')"),
    "duration": ([timedelta(seconds=1)], "Int64"),
    "lists": ([[1], [2, 3], []], "Array(Int64)"),
    "lists with None inside": ([[1], [None]], "Array(Nullable(Int64))"),
    "list and None": ([[1], None], "Array(Int64)"),
    "lists of numbers and texts": ([[1], ["a"]], "Array(String)"),
    "lists of numbers and floats": ([[2**53 + 1], [0.5]], "Array(Float64)"),
    "lists of lists": ([[[1], []], [[2**63]]], "Array(Array(UInt64))"),
    "list and number": ([[1], 2], "Array(Int64)"),
    "lists of dicts": ([[{"x": 1}], [{"y": 2}]], "Array(Map(String, Int64))"),
    "UUIDs": ([UUID(int=5)], "UUID"),
    "addresses": ([IPv4Address("10.0.0.1")], "IPv4"),
    "member of an Enum": (["a"], "Enum8('a' = 1)"),
    "no member of an Enum": (["b"], "Enum8('a' = 1)"),
    "set": ([{1, 2}], "Array(Int64)"),
    "complex number": ([1j], "Float64"),
}
"""Values, and the type that one would give them, or that does not hold them."""


def is_kept(given: Any, found: Any) -> bool:
    """Whether what came back is what was given: as exact, as true, as absent; a moment in any zone, not without one."""
    if isinstance(given, list | tuple):
        if not isinstance(found, list | tuple) or len(given) != len(found):
            return False
        return all(map(is_kept, given, found))
    if isinstance(given, bool) or isinstance(found, bool) or given is None or found is None:
        return given is found
    if isinstance(given, float) and isinstance(found, float):
        same = given == found and math.copysign(1, given) == math.copysign(1, found)
        return same or (math.isnan(given) and math.isnan(found))
    if isinstance(given, datetime):
        return isinstance(found, datetime) and (given.tzinfo is None) == (found.tzinfo is None) and given == found
    numbers = (int, float, Decimal)
    if isinstance(given, numbers) and isinstance(found, numbers):
        return given == found
    return type(given) is type(found) and given == found
