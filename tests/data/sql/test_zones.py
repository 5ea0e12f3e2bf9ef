"""From a clock's time to the moment, in SQL."""

from __future__ import annotations

import pytest

from aaiclick.data import Context
from aaiclick.data.sql.zones import IS_NONE, IS_TWICE, OFFSET, SECONDS, in_zone, moment


@pytest.mark.parametrize(
    ("wall", "none", "twice", "offset"),
    [
        ("2026-03-29 01:59:59", 0, 0, 3600),
        ("2026-03-29 02:00:00", 1, 0, None),
        ("2026-03-29 03:00:00", 0, 0, 7200),
        ("2026-10-25 01:59:59", 0, 0, 7200),
        ("2026-10-25 02:59:59", 0, 1, 7200),
        ("2026-10-25 03:00:00", 0, 0, 3600),
    ],
)
async def test_a_time_is_there_once_twice_or_never(
    context: Context, wall: str, none: int, twice: int, offset: int | None
) -> None:
    answer = await context.client.rows(
        "SELECT "
        + ", ".join(
            in_zone(f"toDateTime64('{wall}', 3)", "Europe/Rome", each)
            for each in (IS_NONE, IS_TWICE, OFFSET, moment("Europe/Rome"))
        )
    )
    assert [column[0] for column in answer.columns[:2]] == [none, twice]
    if offset is not None:
        assert answer.columns[2][0] == offset
        assert answer.columns[3][0].strftime("%Y-%m-%d %H:%M:%S") == wall


async def test_a_time_is_an_exact_number_of_seconds(context: Context) -> None:
    for time in ("toDateTime64('1969-12-31 23:59:59.999999', 6)", "toDateTime('1970-01-01 00:00:05', 'UTC')"):
        found = (await context.client.rows(f"SELECT {SECONDS.format(time)}")).columns[0][0]
        assert str(found) in ("-0.000001000", "5.000000000")
