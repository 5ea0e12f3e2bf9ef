"""Bounds of a column: what they mean, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aaiclick.data import Schema
from aaiclick.data.versions.bounds import FIRST_DAY, FIRST_MOMENT, Axis, before
from aaiclick.errors import InputError

ROME = ZoneInfo("Europe/Rome")
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 (it has no zone)
AWARE = datetime(2026, 1, 1, tzinfo=UTC)


def axis(kind: str) -> Axis:
    return Axis("at", Schema.from_fields({"at": kind}))


@pytest.mark.parametrize(
    ("kind", "given", "start", "end"),
    [
        ("Int64", (1, 3), 1, 3),
        ("Float64", (0.5, 1), 0.5, 1),
        ("Decimal(9, 2)", (Decimal("0.5"), 1), Decimal("0.5"), 1),
        ("String", ("a", "b"), "a", "b"),
        ("Date", (date(2026, 1, 1), date(2026, 1, 2)), date(2026, 1, 1), date(2026, 1, 2)),
        (
            "Date",
            (datetime(2026, 3, 29, tzinfo=ROME), datetime(2026, 3, 30, tzinfo=ROME)),
            date(2026, 3, 29),
            date(2026, 3, 30),
        ),
        ("DateTime", (date(2026, 1, 1), date(2026, 1, 2)), NAIVE, NAIVE + timedelta(days=1)),
        ("DateTime64(3, 'UTC')", (AWARE, AWARE + timedelta(hours=1)), AWARE, AWARE + timedelta(hours=1)),
    ],
)
def test_an_interval_is_one_of_values_of_the_column(kind: str, given: Any, start: Any, end: Any) -> None:
    assert axis(kind).interval(given) == (start, end)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("Int64", (3, 3)),
        ("Int64", (3, 1)),
        ("Int64", (1,)),
        ("Int64", "ab"),
        ("Int64", 7),
        ("Int64", ("1", "2")),
        ("Int64", (True, 2)),
        ("Float64", (float("nan"), 2.0)),
        ("String", (1, 2)),
        ("Date", (1, 2)),
        ("Date", (NAIVE + timedelta(hours=1), NAIVE + timedelta(days=1))),
        ("DateTime", (AWARE, AWARE + timedelta(hours=1))),
        ("DateTime('UTC')", (NAIVE, NAIVE + timedelta(hours=1))),
        ("DateTime('UTC')", (date(2026, 1, 1), date(2026, 1, 2))),
        ("DateTime", (None, NAIVE)),
    ],
)
def test_what_is_no_interval_of_the_column_is_refused(kind: str, given: Any) -> None:
    with pytest.raises(InputError):
        axis(kind).interval(given)


@pytest.mark.parametrize(
    ("kind", "lookback"),
    [
        ("Int64", -1),
        ("Int64", 1.5),
        ("Int64", True),
        ("Float64", float("nan")),
        ("Date", timedelta(hours=5)),
        ("Date", 3),
        ("DateTime", -timedelta(1)),
        ("String", 1),
    ],
)
def test_what_cannot_be_taken_off_is_refused(kind: str, lookback: Any) -> None:
    with pytest.raises(InputError, match="lookback"):
        axis(kind).check_lookback(lookback)


def test_nothing_is_before_what_clickhouse_holds() -> None:
    assert before(NAIVE, timedelta.max) == FIRST_MOMENT
    assert before(date(2026, 1, 1), timedelta(days=700_000)) == FIRST_DAY
    assert before(Decimal("12345678901234567890123456789012345.67"), 1) == Decimal(
        "12345678901234567890123456789012344.67"
    )
    assert before(5, None) == 5


def test_times_are_written_with_their_zone_as_the_session_may_have_another() -> None:
    assert axis("DateTime").written(NAIVE) == "toDateTime64('2026-01-01 00:00:00.000000', 6, 'UTC')"
    assert axis("DateTime('UTC')").written(datetime(2026, 7, 1, 2, tzinfo=ROME)) == (
        "toDateTime64('2026-07-01 00:00:00.000000', 6, 'UTC')"
    )
