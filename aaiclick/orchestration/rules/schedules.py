"""What becomes of the times of a schedule that have come: which of them run, which were missed, when it fires next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import islice, takewhile

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.cron import Schedule, fires, latest_fires, next_fire
from aaiclick.orchestration.rules.names import shorten

PUNCTUAL_S = 60.0
"""A time that is noticed within this is not missed: it takes so long until another leads, at the worst."""

MISSED_MAX_DEFAULT = 10
MISSED_MAX = 1_000
COUNTED_MAX = 1_000
"""How many missed times are counted; beyond, it is «more than»."""

BACKFILL_MAX = 10_000
"""How many times one backfill may cover."""

PARALLEL_MAX = 1_000

YEAR_MIN = 1970
"""Earlier, time zones were not what they are, and nothing was scheduled by them."""


class MissedRuns(StrEnum):
    """What becomes of times that passed while nobody led."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


class Overlap(StrEnum):
    """What becomes of a time at which an earlier run has not ended."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"


class FireOutcome(StrEnum):
    """What became of one time of a schedule."""

    RUN = "run"
    SKIPPED = "skipped"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class Due:
    """What to do about a schedule whose time has come."""

    fires: tuple[datetime, ...]
    """The times to run now, oldest first."""
    missed: int
    """How many times are not made up for."""
    next_run_at: datetime


def due_fires(
    schedule: Schedule, zone: tzinfo, next_run_at: datetime, now: datetime, missed: MissedRuns, missed_max: int
) -> Due:
    """Decide about all times from `next_run_at` to now."""
    before = next_run_at - timedelta(microseconds=1)
    count = 1 if missed is MissedRuns.LATEST else missed_max
    if missed is MissedRuns.NONE:
        start = max(before, now - timedelta(seconds=PUNCTUAL_S))
        chosen = latest_fires(schedule, zone, start, now, COUNTED_MAX)
    else:
        chosen = latest_fires(schedule, zone, before, now, count)
    ends = chosen[0] if chosen else now + timedelta(microseconds=1)
    passed = takewhile(lambda fire: fire < ends, fires(schedule, zone, before))
    return Due(tuple(chosen), sum(1 for _ in islice(passed, COUNTED_MAX + 1)), next_fire(schedule, zone, now))


def fires_within(schedule: Schedule, zone: tzinfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """The times from the one moment up to, and without, the other."""
    return takewhile(lambda fire: fire < end, fires(schedule, zone, start - timedelta(microseconds=1)))


def check_range(start: object, end: object, now: datetime) -> tuple[datetime, datetime]:
    """The range of a backfill: two times with their zones, in order and past."""
    for field, value in (("start", start), ("end", end)):
        if not isinstance(value, datetime) or value.utcoffset() is None:
            hint = "Write it with its offset, as in 2026-11-15T08:00:00+01:00."
            raise InputError(field=field, value=shorten(value), rule="a datetime with a time zone", hint=hint)
    assert isinstance(start, datetime)
    assert isinstance(end, datetime)
    if start.year < YEAR_MIN:
        raise InputError(field="start", value=start.isoformat(), rule=f"the year {YEAR_MIN} or later", hint="")
    if start >= end:
        raise InputError(field="start", value=start.isoformat(), rule="it is before the end", hint="")
    if end > now:
        hint = "What comes later is the schedule's."
        raise InputError(field="end", value=end.isoformat(), rule="a backfill ends in the past", hint=hint)
    return start, end
