"""Texts of files into values: exactly, or not at all."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from aaiclick.data import Context, create_object_from_file
from tests.data.files.test_loading import records, write

__all__ = ["write"]


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


TIME, LAST = datetime(2024, 3, 31, 2, 30), datetime(2299, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
SECONDS = "2024-01-01 12:00:60|2024-01-01|2107-01-01 00:00:00|1969-12-31 23:59:59|2024-01-01 00:00:00.5"
ID = "61f0c404-5cb3-11e7-907b-a6006ad3dba0"
DECIMALS = [Decimal(text) for text in ("123.45", "-1", "1.5", ".5")]

READ: list[tuple[str, str, list[Any] | None, str]] = [
    ("Int8", "-128|127|+1|007| 5 ", [-128, 127, 1, 7, 5], "128|-129|1.0|1e2|0x1|1_0"),
    ("UInt8", "255|0", [255, 0], "256|-1|--1|१"),
    ("Int64", "-9223372036854775808", [-(2**63)], f"9223372036854775808|{'1' * 60}"),
    ("UInt64", "18446744073709551615", [2**64 - 1], "18446744073709551616"),
    ("Int128", str(2**127 - 1), [2**127 - 1], str(2**127)),
    ("UInt256", str(2**256 - 1), [2**256 - 1], f"{2**256}|{'9' * 90}"),
    ("Float64", "1e5|.5|5.|-inf|0.1", [1e5, 0.5, 5.0, -math.inf, 0.1], "1e400|1x|0x10|1e|1,5"),
    ("Float32", "0.5|inf", [0.5, math.inf], "1e39|one"),
    ("Decimal(5, 2)", "123.45|-1|1.500|.5", DECIMALS, "1234.5|1.234|1e1|."),
    ("Bool", "true|False|1|0", [True, False, True, False], "2|yes|t"),
    (
        "Date",
        "1970-01-01|2149-06-06",
        [date(1970, 1, 1), date(2149, 6, 6)],
        "1969-12-31|2149-06-07|2023-02-29|2024-1-1",
    ),
    ("Date32", "1900-01-01|2299-12-31", [date(1900, 1, 1), date(2299, 12, 31)], "1899-12-31|2300-01-01|0000-00-00"),
    ("DateTime('UTC')", "1970-01-01 00:00:00|2024-01-01T12:00:00Z", [at(1970, 1, 1), at(2024, 1, 1, 12)], SECONDS),
    (
        "DateTime64(3, 'UTC')",
        "1950-05-05 01:02:03.250|2024-01-01T00:00:00.5+02:00",
        [at(1950, 5, 5, 1, 2, 3, 250_000), at(2023, 12, 31, 22, 0, 0, 500_000)],
        "2024-01-01 00:00:00.0001|1899-01-01 00:00:00|2300-01-01 00:00:00|2024-02-30 00:00:00|2024-01-01 25:00:00",
    ),
    (
        "DateTime('Europe/Berlin')",
        "2024-06-01 12:00:00|2024-10-27 02:30:00+01:00|2024-03-31 03:00:00",
        [at(2024, 6, 1, 10), at(2024, 10, 27, 1, 30), at(2024, 3, 31, 1)],
        "2024-03-31 02:30:00|2024-10-27 02:30:00",
    ),
    (
        "DateTime64(6)",
        "2024-03-31 02:30:00|2024-10-27T02:30:00.000001|1900-01-01 00:00:00|2299-12-31 23:59:59.999999",
        [TIME, datetime(2024, 10, 27, 2, 30, 0, 1), datetime(1900, 1, 1), LAST],  # noqa: DTZ001
        "2024-01-01 00:00:00Z|2024-01-01 00:00:00+02:00|2024-02-30 00:00:00|2024-01-01 00:00:00.",
    ),
    (
        "DateTime",
        "2024-03-31 02:30:00|2106-02-07 06:28:15",
        None,
        f"2106-02-07 06:28:16|2024-01-01 00:00:00Z|{SECONDS}",
    ),
    ("UUID", ID, [UUID(ID)], f"61f0c404|{'x' * 36}"),
    ("IPv4", "1.2.3.4", None, "1.2.3.400|1.2.3|1.2.3.4x"),
    ("Enum8('red' = 1, 'blue' = 2)", "blue", ["blue"], "green|1|Red"),
    ("LowCardinality(String)", "é|a b", ["é", "a b"], ""),
    ("FixedString(2)", "ab", None, "abc"),
]


@pytest.mark.parametrize(("kind", "right", "values", "wrong"), READ, ids=[each[0] for each in READ])
async def test_texts_are_read_exactly_or_not_at_all(
    context: Context, write: Any, kind: str, right: str, values: list[Any] | None, wrong: str
) -> None:
    texts, others = right.split("|"), [text for text in wrong.split("|") if text]
    lines = "".join(f'"{text}"\n' for text in [*texts, *others])
    path = write("texts.csv", f"v\n{lines}".encode())
    made = await create_object_from_file(path, fields={"v": kind}, on_error="collect")
    assert [each["value"] for each in await records(made.rejected)] == others
    found = (await made.data())["v"] if await made.count() else []
    assert values is None or [same(each) for each in found] == [same(each) for each in values]
    assert len(found) == len(texts)


def same(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo else value


async def test_floats_are_the_nearest_ones(context: Context, write: Any) -> None:
    texts = ["0.1", "2.2250738585072014e-308", "9007199254740993", "1.7976931348623157e308", "123456.789012345678"]
    texts.append("5e-324")
    made = await create_object_from_file(write("f.csv", ("x\n" + "\n".join(texts)).encode()), fields={"x": "Float64"})
    assert (await made.data())["x"] == [float(text) for text in texts]
