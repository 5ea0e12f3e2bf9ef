"""Decides about due schedules: which fire times run, which were missed, when the next one is. Also backfill rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import islice, takewhile

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.schedules.cron import Schedule, fires, latest_fires, next_fire, start_of_day
from aaiclick.orchestration.rules.validation import shorten

PUNCTUAL_S = 60.0
"""A fire time noticed within so many seconds is not missed: the longest time until another process leads."""

MISSED_MAX_DEFAULT = 10
MISSED_MAX = 1_000
COUNTED_MAX = 1_000
"""Missed times are counted up to this; a count of one more means «more than»."""

BACKFILL_MAX = 10_000
"""Fire times that one backfill may cover."""

PARALLEL_MAX = 1_000

YEAR_MIN = 1970
"""The first year of a backfill's range: time zone data of earlier years is unreliable."""


class MissedRuns(StrEnum):
    """What is done about fire times that passed while no process led."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


class Overlap(StrEnum):
    """What is done about a fire time at which an earlier run has not ended."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"


class FireOutcome(StrEnum):
    """What was done about one fire time."""

    RUN = "run"
    SKIPPED = "skipped"
    QUEUED = "queued"


class BackfillStatus(StrEnum):
    """Whether a backfill runs, or how it ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    COMPLETED_WITH_FAILURES = "completed_with_failures"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TimeState(StrEnum):
    """The state of a fire time, by its latest run."""

    NEW = "new"
    SKIPPED = "skipped"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    GONE = "gone"
    """The fire time ran, and its job was deleted by retention."""


NEVER_RUN = frozenset({TimeState.NEW, TimeState.SKIPPED})
HAS_RUN = frozenset({TimeState.COMPLETED, TimeState.FAILED, TimeState.CANCELLED, TimeState.GONE})


@dataclass(frozen=True, slots=True)
class Due:
    """What to do about a schedule that is due."""

    fires: tuple[datetime, ...]
    """The fire times to run now, oldest first."""
    missed: int
    """The number of earlier fire times that are not run, at most COUNTED_MAX + 1."""
    next_run_at: datetime


def due_fires(
    schedule: Schedule, zone: tzinfo, next_run_at: datetime, now: datetime, missed: MissedRuns, missed_max: int
) -> Due:
    """Decide about all fire times from `next_run_at` to now; `missed_max` limits how many run with MissedRuns.ALL."""
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
    """Return the fire times in [start, end)."""
    return takewhile(lambda fire: fire < end, fires(schedule, zone, start - timedelta(microseconds=1)))


def is_run(state: TimeState, *, force: bool, failed_only: bool) -> bool:
    """Return whether a backfill runs a fire time in this state; one that is queued or running is never run again."""
    if failed_only:
        return state is TimeState.FAILED
    return state in NEVER_RUN or (force and state in HAS_RUN)


def end_of_backfill(runs: Mapping[str, int]) -> BackfillStatus:
    """Return the final status of a backfill from the numbers of its runs by job status.

    Cancelled runs count as not completed, like failed ones.
    """
    completed = runs.get("completed", 0)
    if sum(runs.values()) == completed:
        return BackfillStatus.COMPLETED
    return BackfillStatus.COMPLETED_WITH_FAILURES if completed else BackfillStatus.FAILED


def count_times(status: BackfillStatus, total: int, left_alone: int, runs: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of a backfill's fire times by state.

    Those without a run are «waiting» while the backfill runs, else «without_run»: never reached, or deleted since.
    """
    counts = {name: runs[name] for name in ("completed", "failed", "cancelled") if runs.get(name)}
    if running := sum(runs.values()) - sum(counts.values()):
        counts["running"] = running
    if left_alone:
        counts["left_alone"] = left_alone
    if (rest := total - sum(counts.values())) > 0:
        counts["waiting" if status is BackfillStatus.RUNNING else "without_run"] = rest
    return counts


def read_when(text: str, field: str) -> date:
    """Parse an ISO day or time; raise InputError, which names the field, if it is neither. An offset is optional."""
    try:
        if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text)
    except ValueError:
        hint = "Write a day (2026-11-15, midnight in the schedule's zone) or a time (2026-11-15T08:00:00+01:00)."
        raise InputError(field=field, value=shorten(text), rule="it is neither a day nor a time", hint=hint) from None


def read_time(text: str, field: str) -> datetime:
    """Parse an ISO time with its UTC offset; raise InputError, which names the field, if it is none."""
    found = read_when(text, field)
    if isinstance(found, datetime) and found.utcoffset() is not None:
        return found
    hint = "Write it as in 2026-11-15T08:00:00+01:00."
    raise InputError(field=field, value=shorten(text), rule="the time has no UTC offset", hint=hint)


def check_range(start: object, end: object, zone: tzinfo, now: datetime) -> tuple[datetime, datetime]:
    """Return the checked range of a backfill: two aware times, in order and past. A date means its start in `zone`."""
    begins, ends = _moment(start, "start", zone), _moment(end, "end", zone)
    if begins.year < YEAR_MIN:
        raise InputError(
            field="start", value=begins.isoformat(), rule=f"it must be in the year {YEAR_MIN} or later", hint=""
        )
    if begins >= ends:
        raise InputError(field="start", value=begins.isoformat(), rule="it must be before the end", hint="")
    if ends > now:
        hint = "The schedule itself runs later times."
        raise InputError(field="end", value=ends.isoformat(), rule="a backfill must end in the past", hint=hint)
    return begins, ends


def _moment(value: object, field: str, zone: tzinfo) -> datetime:
    if isinstance(value, datetime):
        if value.utcoffset() is not None:
            return value
    elif isinstance(value, date) and YEAR_MIN <= value.year < MAXYEAR:
        return start_of_day(value, zone)
    hint = "Give a date, or a datetime with its offset, as in 2026-11-15T08:00:00+01:00."
    raise InputError(
        field=field, value=shorten(value), rule="it must be a day, or a datetime with a time zone", hint=hint
    )
