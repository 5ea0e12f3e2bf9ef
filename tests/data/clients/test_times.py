"""Times in answers, as the types of their columns mean them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from aaiclick.data.clients.times import (
    FineTime,
    as_meant,
    find_fine,
    from_numbers,
    has_nanoseconds,
    is_doubtful,
    may_have_zones,
    with_zones,
)

TIME = datetime(1970, 1, 1, 0, 0, 5)  # noqa: DTZ001
TOKYO = datetime(1970, 1, 1, 9, 0, 5, tzinfo=ZoneInfo("Asia/Tokyo"))


def test_types_tell_where_something_may_be_lost() -> None:
    assert may_have_zones("Array(Nullable(DateTime))")
    assert not may_have_zones("DateTime64(6)")
    assert not may_have_zones("DateTime('UTC')")
    assert has_nanoseconds("Nullable(DateTime64(9, 'UTC'))")
    assert not has_nanoseconds("DateTime64(6)")


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("DateTime('Asia/Tokyo')", TIME, TOKYO),
        ("DateTime", TIME, TIME),
        ("Nullable(DateTime('UTC'))", None, None),
        ("Array(Nullable(DateTime('Asia/Tokyo')))", [TIME, None], [TOKYO, None]),
        ("Map(String, DateTime('Asia/Tokyo'))", {"a": TIME}, {"a": TOKYO}),
        ("Tuple(Int64, DateTime('Asia/Tokyo'))", (1, TIME), (1, TOKYO)),
        ("Tuple(a Int64, b DateTime('Asia/Tokyo'))", {"a": 1, "b": TIME}, {"a": 1, "b": TOKYO}),
        ("Of The Future", TIME, TIME),
    ],
)
def test_times_get_back_their_zones(kind: str, given: object, expected: object) -> None:
    assert with_zones([given], kind) == [expected]


def test_ticks_become_times_and_no_digit_is_cut() -> None:
    assert from_numbers([5_000_000_000, -1_000], "DateTime64(9)") == [TIME, datetime(1969, 12, 31, 23, 59, 59, 999999)]  # noqa: DTZ001
    assert from_numbers([5_000], "DateTime64(3, 'Asia/Tokyo')") == [TOKYO]
    assert from_numbers([5_000], "DateTime64(3, 'UTC')") == [TIME.replace(tzinfo=UTC)]
    (fine,) = from_numbers([1], "DateTime64(9)")
    (zoned,) = from_numbers([1], "DateTime64(8, 'Asia/Tokyo')")
    assert (fine, zoned) == ("1970-01-01 00:00:00.000000001", "1970-01-01 09:00:00.00000001+09:00")
    assert isinstance(fine, FineTime)
    assert find_fine({"a": [(1, fine)]}) == fine
    assert find_fine(["2024-01-01 00:00:00.000000001", 5]) is None


def test_arrow_tables_and_batches_have_the_times_that_are_meant() -> None:
    seconds, micros = pa.uint32(), pa.timestamp("us", "UTC")
    given = pa.table(
        {
            "b": pa.array([5], seconds),
            "z": pa.array([5], seconds),
            "u": pa.array([5], seconds),
            "n": pa.array([5_000_000], micros),
            "l": pa.array([[5, None]], pa.list_(seconds)),
            "m": pa.array([[("a", 5)]], pa.map_(pa.string(), seconds)),
            "s": pa.array([{"a": 5, "b": 5_000_000}], pa.struct([("a", seconds), ("b", micros)])),
        }
    )
    kinds = ["DateTime", "DateTime('Asia/Tokyo')", "UInt32", "Nullable(DateTime64(6))", "Array(Nullable(DateTime))"]
    kinds += ["Map(String, DateTime)", "Tuple(a DateTime, b DateTime64(6, 'UTC'))"]
    assert is_doubtful(given.schema)
    for data in (given, given.to_batches()[0]):
        (found,) = as_meant(data, kinds).to_pylist()
        assert found == {
            "b": TIME,
            "z": TOKYO,
            "u": 5,
            "n": TIME,
            "l": [TIME, None],
            "m": [("a", TIME)],
            "s": {"a": TIME, "b": TIME.replace(tzinfo=UTC)},
        }
    assert not is_doubtful(pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))]))
    assert as_meant(given, ["of the future"] * 7) is given
