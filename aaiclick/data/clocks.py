"""Times with a zone and times without one: told apart everywhere, and never taken for each other.

A time without a zone is naive: what a clock on the wall shows, wherever it hangs. One with a zone is aware: a moment.
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
"""What is known of times: nothing (or they are none), that they have no zone, or that they have one."""

CONVERT = "Attach a zone with tz_localize('Europe/Rome'), or drop it with tz_localize(None)."
GIVE_ALIKE = "Give all of them a zone, as replace(tzinfo=datetime.UTC) does, or none, as replace(tzinfo=None)."
LEFT_OUT = "the clocks of its zone leave it out"

_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d([.]\d{1,6})?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
_TOLD: dict[Clock, str] = {"": "no times", "naive": "times without a zone", "aware": "times with a zone"}


def clock_of(value: object) -> Clock:
    """Whether a Python value is a time with or without a zone; of a list or a dict, those in it."""
    if isinstance(value, datetime):
        return "naive" if value.tzinfo is None else "aware"
    if isinstance(value, list | tuple | set | frozenset):
        return common_clock(map(clock_of, value))
    return common_clock(map(clock_of, value.values())) if isinstance(value, Mapping) else ""


def common_clock(clocks: Iterable[Clock]) -> Clock:
    """That of all of these which have one; nothing is known where they differ."""
    found = set(clocks) - {""}
    return found.pop() if len(found) == 1 else ""


def is_mixed(*clocks: Clock) -> bool:
    """Whether there are both."""
    return {"naive", "aware"} <= set(clocks)


def check_alike(what: str, *clocks: Clock) -> None:
    """Refuse to put times with a zone beside times without one."""
    if is_mixed(*clocks):
        raise mixed(what, " beside ".join(_TOLD[clock] for clock in clocks if clock))


def mixed(what: str, value: str) -> InputError:
    """The refusal of both in one place."""
    return InputError(field=what, value=value, rule="these do not go together", hint=CONVERT)


def check_taken(wanted: Clock, found: Clock) -> None:
    """Refuse to attach a zone to times that have one, and to ask for that of times that have none."""
    if not wanted or not found or wanted == found:
        return
    rule = "they have a zone already" if wanted == "naive" else "they have no zone"
    hint = "tz_convert('Europe/Rome') gives the same moments in another." if wanted == "naive" else CONVERT
    raise InputError(field="operands", value=_TOLD[found], rule=rule, hint=hint)


def as_time(value: object) -> object:
    """What a constant beside times means: a text is a time or refused, a day is its beginning."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 (it has no zone)
    if not isinstance(value, str):
        return value
    try:
        if _TIME.fullmatch(value):
            return datetime.fromisoformat(value)
    except ValueError:  # no such day, or no such hour
        pass
    rule = "it stands beside times, and is none"
    raise InputError(field="value", value=shown(repr(value)), rule=rule, hint="Write it as 2024-02-29 12:00:00.")


def is_left_out(value: datetime) -> bool:
    """Whether an aware time is none: when clocks are put forward, they show no such time.

    There, and only there, the difference to UTC would be larger the second time.
    """
    first, second = value.replace(fold=0).utcoffset(), value.replace(fold=1).utcoffset()
    return first is not None and second is not None and first < second


def seconds_in(span: timedelta) -> Decimal:
    """A span of time as what stands for one in a query: its exact seconds, with no more digits than it needs."""
    whole = span.days * 86_400 + span.seconds
    return Decimal(whole * 10**6 + span.microseconds).scaleb(-6) if span.microseconds else Decimal(whole)
