"""From the time of a clock in some zone to the moment, in SQL: where ClickHouse would guess, it is told."""

from __future__ import annotations

from aaiclick.data.sql import quoting

EPOCH = "toDateTime64('1970-01-01 00:00:00', 0, 'UTC')"
SECONDS = f"toDecimal128(minus({{0}}, {EPOCH}), 9)"
"""A time as the exact number of its seconds since 1970."""

DAY_S = 86_400

IS_NONE = "NOT (is_before OR is_after)"
IS_TWICE = "(is_before AND is_after AND before != after)"
OFFSET = "if(is_before, before, after)"
"""What `in_zone` lets be said: whether clocks leave a time out or show it twice, and its difference to UTC."""


def named(body: str, **values: str) -> str:
    """An expression in which these values have names: each is written once."""
    names = ", ".join(values)
    listed = ", ".join(f"[{value}]" for value in values.values())
    return f"arrayMap({f'({names})' if len(values) > 1 else names} -> {body}, {listed})[1]"


def in_zone(wall: str, zone: str, body: str) -> str:
    """An expression that says something of a time on the clocks of a zone, which is called `wall` in it.

    Clocks are put forward or back at most once within a day before and after.
    """
    before, after = f"subtractSeconds(near, {DAY_S})", f"addSeconds(near, {DAY_S})"
    is_before = "timezoneOffset(subtractSeconds(near, before)) = before"
    is_after = "timezoneOffset(subtractSeconds(near, after)) = after"
    found = named(body, is_before=is_before, is_after=is_after)
    found = named(found, before=f"timezoneOffset({before})", after=f"timezoneOffset({after})")
    found = named(found, near=f"toTimeZone(toDateTime64(wall, 6), {quoting.text(zone)})")
    return named(found, wall=wall)


def moment(zone: str) -> str:
    """The moment of `wall`, in such an expression."""
    return f"subtractSeconds(toTimeZone(wall, {quoting.text(zone)}), {OFFSET})"
