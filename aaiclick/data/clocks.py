"""Times with a zone and times without one: distinguished everywhere, and never converted silently.

An aware time has a zone and names a moment. A naive time has none: it is the reading of a wall clock in any place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal

from aaiclick.errors import InputError
from aaiclick.urls import shown

Clock = Literal["", "naive", "aware"]
"""Whether times have a zone: naive, aware, or an empty text if it is unknown or they are no times."""

CONVERT = "Attach a zone with tz_localize('Europe/Rome'), or drop it with tz_localize(None)."
GIVE_ALIKE = "Give all of them a zone with replace(tzinfo=datetime.UTC), or none with replace(tzinfo=None)."
LEFT_OUT = "the clocks of its zone skip this time"

_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d([.]\d{1,6})?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
_TOLD: dict[Clock, str] = {"": "no times", "naive": "times without a zone", "aware": "times with a zone"}


def clock_of(value: object) -> Clock:
    """Return the clock of a Python value; of a collection, the common clock of its values."""
    if isinstance(value, datetime):
        return "naive" if value.tzinfo is None else "aware"
    if isinstance(value, list | tuple | set | frozenset):
        return common_clock(map(clock_of, value))
    return common_clock(map(clock_of, value.values())) if isinstance(value, Mapping) else ""


def common_clock(clocks: Iterable[Clock]) -> Clock:
    """Return the clock that all known ones share; an empty text if they differ or none is known."""
    found = set(clocks) - {""}
    return found.pop() if len(found) == 1 else ""


def is_mixed(*clocks: Clock) -> bool:
    """Return whether both naive and aware times are among these."""
    return {"naive", "aware"} <= set(clocks)


def check_alike(what: str, *clocks: Clock) -> None:
    """Raise InputError if times with a zone stand beside times without one."""
    if is_mixed(*clocks):
        raise mixed(what, " beside ".join(_TOLD[clock] for clock in clocks if clock))


def mixed(what: str, value: str) -> InputError:
    """Return the error for naive and aware times in one place."""
    return InputError(field=what, value=value, rule="these cannot be combined", hint=CONVERT)


def check_taken(wanted: Clock, found: Clock) -> None:
    """Raise InputError if an operation on times of one clock is given times of the other.

    Attaching a zone wants naive times; converting to another zone wants aware ones. An unknown clock is accepted.
    """
    if not wanted or not found or wanted == found:
        return
    rule = "they have a zone already" if wanted == "naive" else "they have no zone"
    hint = "tz_convert('Europe/Rome') gives the same moments in another." if wanted == "naive" else CONVERT
    raise InputError(field="operands", value=_TOLD[found], rule=rule, hint=hint)


def as_time(value: object) -> object:
    """Return what a constant beside times means: a text is read as a time, a date becomes its midnight.

    Raise InputError for a text that is not a time.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 (it has no zone)
    if not isinstance(value, str):
        return value
    try:
        if _TIME.fullmatch(value):
            return datetime.fromisoformat(value)
    except ValueError:  # no such day, or no such hour
        pass
    rule = "it is combined with times, and is not a time"
    raise InputError(field="value", value=shown(repr(value)), rule=rule, hint="Write it as 2024-02-29 12:00:00.")


def is_left_out(value: datetime) -> bool:
    """Return whether an aware time does not exist in its zone because clocks are put forward past it.

    Only in such a gap is the offset to UTC larger with `fold=1` than with `fold=0`.
    """
    first, second = value.replace(fold=0).utcoffset(), value.replace(fold=1).utcoffset()
    return first is not None and second is not None and first < second


def seconds_in(span: timedelta) -> Decimal:
    """Return a timedelta as a query represents it: its exact seconds, with decimals only if it has microseconds."""
    whole = span.days * 86_400 + span.seconds
    return Decimal(whole * 10**6 + span.microseconds).scaleb(-6) if span.microseconds else Decimal(whole)
