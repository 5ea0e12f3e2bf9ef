"""SQL that converts local times of a zone to moments; ClickHouse itself guesses at skipped and repeated times."""

from __future__ import annotations

from aaiclick.data.sql import quoting

EPOCH = "toDateTime64('1970-01-01 00:00:00', 0, 'UTC')"
SECONDS = f"toDecimal128(minus({{0}}, {EPOCH}), 9)"
"""SQL template: a time as the exact number of seconds since 1970."""

DAY_S = 86_400

IS_NONE = "NOT (is_before OR is_after)"
IS_TWICE = "(is_before AND is_after AND before != after)"
OFFSET = "if(is_before, before, after)"
"""Expressions for the body of `in_zone`: whether the zone's clocks skip a time, show it twice, and its UTC offset."""


def named(body: str, **values: str) -> str:
    """Return an expression in which names stand for values, so that each value is written once."""
    names = ", ".join(values)
    listed = ", ".join(f"[{value}]" for value in values.values())
    return f"arrayMap({f'({names})' if len(values) > 1 else names} -> {body}, {listed})[1]"


def in_zone(wall: str, zone: str, body: str) -> str:
    """Return an expression about the local time `wall` in a zone; `body` uses IS_NONE, IS_TWICE, OFFSET and `wall`.

    Assumes that clocks change at most once within a day before and after.
    """
    before, after = f"subtractSeconds(near, {DAY_S})", f"addSeconds(near, {DAY_S})"
    is_before = "timezoneOffset(subtractSeconds(near, before)) = before"
    is_after = "timezoneOffset(subtractSeconds(near, after)) = after"
    found = named(body, is_before=is_before, is_after=is_after)
    found = named(found, before=f"timezoneOffset({before})", after=f"timezoneOffset({after})")
    found = named(found, near=f"toTimeZone(toDateTime64(wall, 6), {quoting.text(zone)})")
    return named(found, wall=wall)


def moment(zone: str) -> str:
    """Return the moment of `wall`, for the body of `in_zone`."""
    return f"subtractSeconds(toTimeZone(wall, {quoting.text(zone)}), {OFFSET})"
