"""What days and moments ClickHouse holds, to the tick."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.inference import Unfit
from aaiclick.data.typing.time_ranges import fit_days, fit_moments

TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [("Date", date(1970, 1, 1), date(2149, 6, 6)), ("Date32", date(1900, 1, 1), date(2299, 12, 31))],
)
def test_days_fit_up_to_the_last(type_: str, low: date, high: date) -> None:
    kind, day = parse(type_), timedelta(days=1)
    assert fit_days(pa.array([low, None, high]), kind).to_pylist() == [low, None, high]
    for outside in (low - day, high + day):
        with pytest.raises(Unfit, match=str(low)):
            fit_days(pa.array([outside]), kind)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_moments_fit_within_the_years_of_their_zone(zone: str) -> None:
    kind = parse(f"DateTime64(6, '{zone}')")
    low = datetime(1900, 1, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    high = datetime(2300, 1, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC) - TICK
    assert fit_moments(pa.array([low, high]), kind).to_pylist() == [low, high]
    for outside in (low - TICK, high + TICK):
        with pytest.raises(Unfit, match="1900 to 2299"):
            fit_moments(pa.array([outside]), kind)


def test_seconds_fit_up_to_the_last() -> None:
    for kind, zone in (("DateTime('UTC')", UTC), ("DateTime", None)):
        last = datetime(2106, 2, 7, 6, 28, 15, tzinfo=zone)
        assert fit_moments(pa.array([last]), parse(kind)).to_pylist() == [last]
        with pytest.raises(Unfit, match="2106"):
            fit_moments(pa.array([last + timedelta(seconds=1)]), parse(kind))


@pytest.mark.parametrize("digits", range(7))
def test_no_digit_of_a_second_is_lost(digits: int) -> None:
    kind = parse(f"DateTime64({digits})")
    step = timedelta(microseconds=10 ** (6 - digits))
    for moment in (datetime(2024, 1, 1), datetime(1950, 1, 1)):  # noqa: DTZ001
        assert fit_moments(pa.array([moment + step]), kind).to_pylist() == [moment + step]
        if digits < 6:
            with pytest.raises(Unfit, match=f"{digits} digits"):
                fit_moments(pa.array([moment + TICK]), kind)


@pytest.mark.parametrize(
    ("kind", "zone", "rule"), [("DateTime64(6)", UTC, "has none"), ("DateTime('UTC')", None, "has one")]
)
def test_a_zone_is_neither_attached_nor_dropped(kind: str, zone: tzinfo | None, rule: str) -> None:
    with pytest.raises(Unfit, match=rule) as refusal:
        fit_moments(pa.array([None, datetime(2024, 1, 1, tzinfo=zone)]), parse(kind))
    assert refusal.value.row == 1
    nothing = pa.array([None], pa.timestamp("us", "UTC" if zone else None))
    assert fit_moments(nothing, parse(kind)).to_pylist() == [None]
