"""Parses cron schedules of five fields and computes their fire times in a time zone.

A schedule that names its hours follows the local clock: a time that a fold repeats fires only at its first
occurrence, and a time inside a gap fires right after the gap. A schedule that fires in every hour follows elapsed
time.
"""

from __future__ import annotations

import calendar
import difflib
import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from itertools import islice, takewhile
from typing import NamedTuple, NoReturn

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import shorten

SCHEDULE_LENGTH_MAX = 200
ZONE_LENGTH_MAX = 100
YEARS_MAX = 50
"""More than the longest time between two fires: 29 February falls on a given weekday at least every 40 years."""

SHOWN = 5

_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, _WEEKDAYS),
)
_ITEM = re.compile(r"(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:/([0-9]+))?")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9][A-Za-z0-9_+-]*){0,2}")
_NO_ZONES = ("posix/", "right/", "localtime", "posixrules", "Factory")
"""Names beside the zones of many systems that are refused: their meaning differs from machine to machine."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A parsed schedule: the five fields, each as the numbers that match."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Sunday is 0."""
    either_day: bool
    """Whether both the day of the month and the weekday are restricted: then a day that matches either one fires."""

    @property
    def every_hour(self) -> bool:
        return len(self.hours) == 24

    def fits_day(self, day: date) -> bool:
        """Return whether the schedule fires on this calendar day."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week


# ---------------------------------------------------------------- reading


def parse_schedule(text: object) -> Schedule:
    """Parse a schedule; raise InputError, which names the wrong field, if it is malformed or never fires."""
    if type(text) is not str:
        _refuse("schedule", text, "it must be a str", "Write five fields, as in 0 8 * * *")
    if len(text) > SCHEDULE_LENGTH_MAX:
        _refuse("schedule", text, f"it is longer than {SCHEDULE_LENGTH_MAX} characters", "")
    line = " ".join(part for part in re.split("[ \t]+", text) if part)
    words = _WORDS.get(line.lower(), line).split(" ") if line else []
    if line.startswith("@") and len(words) == 1:
        _refuse("schedule", text, "there is no such word", f"The words are: {', '.join(_WORDS)}.")
    if len(words) != len(_FIELDS):
        hint = "The fields are: minute, hour, day of month, month, day of week."
        _refuse("schedule", text, f"it has {len(words)} fields instead of 5", hint)
    minutes, hours, days, months, weekdays = (_numbers(word, field) for word, field in zip(words, _FIELDS, strict=True))
    schedule = Schedule(
        text=line,
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(day % 7 for day in weekdays),
        either_day=not words[2].startswith("*") and not words[4].startswith("*"),
    )
    if not schedule.either_day and not any(min(days) <= _longest(month) for month in months):
        _refuse("schedule day of month", words[2], f"that date never occurs in month {words[3]}", "")
    return schedule


def _longest(month: int) -> int:
    return calendar.monthrange(2000, month)[1]


def _numbers(word: str, field: _Field) -> set[int]:
    numbers: set[int] = set()
    for item in word.split(","):
        numbers.update(_item(item, word, field))
    return numbers


def _item(item: str, word: str, field: _Field) -> range:
    """Return the numbers of one item of a list: `*`, `5`, `1-5` or `mon`, each with or without a step."""
    where, allowed = f"schedule {field.name}", f"{field.least} to {field.most}"
    found = _ITEM.fullmatch(item.lower()) if item.isascii() else None
    if found is None:
        hint = "Write *, numbers, ranges (1-5), steps (*/15) and lists (1,15) of them."
        _refuse(where, word, "it is not valid in a cron schedule", hint)
    first, last, step = found.groups()
    if first == "*":
        if last is not None:
            _refuse(where, word, "* has no range", "Write the range without *.")
        start, end = field.least, field.most - (field.names is _WEEKDAYS)
    else:
        start = _number(first, word, field)
        end = start if last is None else _number(last, word, field)
        if last == "sun" and start > 0:
            end = 7
        if last is None and step is not None:
            end = field.most - (field.names is _WEEKDAYS)
    if not field.least <= start <= field.most or not field.least <= end <= field.most:
        _refuse(where, word, f"allowed are {allowed}", "")
    if start > end:
        _refuse(where, word, "its range ends before it begins", f"Write {start}-{field.most},{field.least}-{end}.")
    stride = 1 if step is None else int(step)
    if step is not None and not 1 <= stride <= field.most:
        _refuse(where, word, f"a step must be from 1 to {field.most}", "")
    return range(start, end + 1, stride)


def _number(text: str, word: str, field: _Field) -> int:
    if text.isdecimal():
        return int(text)
    if text in field.names:
        return field.names.index(text) + (field.names is _MONTHS)
    hint = f"The names are: {', '.join(field.names)}." if field.names else ""
    _refuse(f"schedule {field.name}", word, f"{shorten(text)} is not a number from {field.least} to {field.most}", hint)


def find_zone(name: object) -> tzinfo:
    """Return the time zone of this IANA name; raise InputError if there is none."""
    if type(name) is not str or not 1 <= len(name) <= ZONE_LENGTH_MAX:
        _refuse("timezone", name, "it must be the name of a time zone", "Write a name such as Europe/Berlin.")
    if name == "UTC":
        return UTC
    if not _ZONE.fullmatch(name) or name.startswith(_NO_ZONES):
        _refuse("timezone", name, "it is not the name of a time zone", "Write a name such as Europe/Berlin.")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):  # the name of a directory of zones gives an OSError
        near = difflib.get_close_matches(name, sorted(zoneinfo.available_timezones()), n=1)
        hint = f"Did you mean {near[0]}?" if near else "Write a name such as Europe/Berlin."
    _refuse("timezone", name, "there is no such time zone", hint)


def _refuse(field: str, value: object, rule: str, hint: str) -> NoReturn:
    raise InputError(field=field, value=shorten(value), rule=rule, hint=hint)


# ---------------------------------------------------------------- firing


def next_fire(schedule: Schedule, zone: tzinfo, after: datetime) -> datetime:
    """Return the first fire time after this moment, in UTC."""
    return next(fires(schedule, zone, after))


def next_fires(schedule: Schedule, zone: tzinfo, after: datetime, count: int = SHOWN) -> list[datetime]:
    """Return the next fire times for display: each with the UTC offset of the zone at that time."""
    return [with_offset(fire, zone) for fire in islice(fires(schedule, zone, after), count)]


def with_offset(moment: datetime, zone: tzinfo) -> datetime:
    """Return the moment as local time in the zone, with a fixed UTC offset in the place of the zone.

    With the zone itself, Python would treat times in a fold as unequal to any time of another zone.
    """
    local = moment.astimezone(zone)
    return local.replace(tzinfo=timezone(local.utcoffset() or timedelta()), fold=0)


def fires(schedule: Schedule, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Yield all fire times after this moment in UTC, in order and each once.

    Raise InputError when there are no more within YEARS_MAX years.
    """
    last = after.astimezone(UTC)
    first_day = after.astimezone(zone).date() - timedelta(days=2)  # a gap may move a fire time into the next day
    for day in _days(schedule, first_day):
        moments = _passing(schedule, zone, day, last) if schedule.every_hour else _shown(schedule, zone, day)
        for moment in moments:
            if moment > last:
                last = moment
                yield moment
    rule = f"nothing fires in the {YEARS_MAX} years after it"
    raise InputError(field="after", value=after.isoformat(), rule=rule, hint="")


def latest_fires(schedule: Schedule, zone: tzinfo, after: datetime, until: datetime, count: int) -> list[datetime]:
    """Return the last `count` fire times in (after, until], oldest first.

    Looks back from `until` in growing spans, so that a long interval with many fire times costs no more.
    """
    span = timedelta(hours=1)
    while True:
        start = max(after, until - span)
        found = list(takewhile(lambda fire: fire <= until, fires(schedule, zone, start)))
        if len(found) >= count or start == after:
            return found[-count:] if count else []
        span *= 2


def previous_fire(schedule: Schedule, zone: tzinfo, before: datetime) -> datetime:
    """Return the last fire time before this moment, in UTC; raise InputError if there is none in YEARS_MAX years."""
    until = before - timedelta(microseconds=1)
    found = latest_fires(schedule, zone, before - timedelta(days=366 * YEARS_MAX), until, 1)
    if not found:
        rule = f"nothing fired in the {YEARS_MAX} years before it"
        raise InputError(field="before", value=before.isoformat(), rule=rule, hint="")
    return found[0]


def start_of_day(day: date, zone: tzinfo) -> datetime:
    """Return the first moment of a day in the zone, in UTC; not 00:00 local time if a gap begins at midnight."""
    return _moment(datetime(day.year, day.month, day.day, tzinfo=zone))


def _days(schedule: Schedule, first: date) -> Iterator[date]:
    """Yield the days on which the schedule fires; end YEARS_MAX years after the last of them."""
    day, ends = first, first.year + YEARS_MAX
    while day.year <= min(ends, 9998):
        if day.month not in schedule.months:
            day = (day.replace(day=28) + timedelta(days=4)).replace(day=1)
            continue
        if schedule.fits_day(day):
            ends = day.year + YEARS_MAX
            yield day
        day += timedelta(days=1)


def _shown(schedule: Schedule, zone: tzinfo, day: date) -> Iterator[datetime]:
    """Yield the moments of a day's local times, each at its first occurrence."""
    for hour in schedule.hours:
        for minute in schedule.minutes:
            yield _moment(datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone))


def _moment(wall: datetime) -> datetime:
    """Return the moment, in UTC, of the local time's first occurrence; the end of the gap if it is in a gap."""
    moment = wall.astimezone(UTC)
    if moment.astimezone(wall.tzinfo).replace(tzinfo=None) != wall.replace(tzinfo=None):
        return _end_of_gap(wall)
    return moment


def _end_of_gap(wall: datetime) -> datetime:
    """Return the moment at which the local clock was moved forward over this time, found by bisection to the second."""
    before, after = wall.replace(fold=1).astimezone(UTC), wall.astimezone(UTC)
    new_offset = after.astimezone(wall.tzinfo).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds()) // 2)
        if middle.astimezone(wall.tzinfo).utcoffset() == new_offset:
            after = middle
        else:
            before = middle
    return after


def _passing(schedule: Schedule, zone: tzinfo, day: date, after: datetime) -> Iterator[datetime]:
    """Yield the moments of a day, from the minute of `after` on, whose local minute matches; in a fold both passes."""
    begins = _moment(datetime(day.year, day.month, day.day, tzinfo=zone))
    moment = max(begins, after.replace(second=0, microsecond=0))
    while (wall := moment.astimezone(zone)).date() <= day:
        if wall.date() == day and wall.minute in schedule.minutes:
            yield moment
        ahead = min((minute - wall.minute - 1) % 60 + 1 for minute in schedule.minutes)
        moment += timedelta(minutes=min(ahead, 15 - wall.minute % 15))  # offsets change at quarters of an hour
