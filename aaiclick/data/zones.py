"""From the time of a clock in some zone to the moment, in SQL: where ClickHouse would guess, it is told."""

from __future__ import annotations

from aaiclick.data import sql

EPOCH = "toDateTime64('1970-01-01 00:00:00', 0, 'UTC')"
SECONDS = f"toDecimal128(minus({{0}}, {EPOCH}), 9)"
"""A time as the exact number of its seconds since 1970."""

DAY_S = 86_400


class Localized:
    """A time of the wall as moments of a zone, in SQL: there may be one, two or none.

    Clocks are put forward or back at most once within a day before and after.
    """

    def __init__(self, wall: str, zone: str) -> None:
        self._wall, self._zone = wall, sql.text(zone)
        near = f"toTimeZone(toDateTime64({wall}, 6), {self._zone})"
        before = f"timezoneOffset(subtractSeconds({near}, {DAY_S}))"
        after = f"timezoneOffset(addSeconds({near}, {DAY_S}))"
        is_before = f"(timezoneOffset(subtractSeconds({near}, {before})) = {before})"
        is_after = f"(timezoneOffset(subtractSeconds({near}, {after})) = {after})"
        self.is_none = f"NOT ({is_before} OR {is_after})"
        self.is_twice = f"({is_before} AND {is_after} AND {before} != {after})"
        self.offset = f"if({is_before}, {before}, {after})"

    @property
    def moment(self) -> str:
        return f"subtractSeconds(toTimeZone({self._wall}, {self._zone}), {self.offset})"
