"""Times with a zone and times without one: told apart everywhere, and never taken for each other.

A time without a zone is naive: what a clock on the wall shows, wherever it hangs. One with a zone is aware: a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from aaiclick.errors import InputError

Clock = Literal["", "naive", "aware"]
"""What is known of times: nothing (or they are none), that they have no zone, or that they have one."""

CONVERT = "Attach a zone with tz_localize('Europe/Rome'), or drop it with tz_localize(None)."
GIVE_ALIKE = "Give all of them a zone, as replace(tzinfo=datetime.UTC) does, or none, as replace(tzinfo=None)."
LEFT_OUT = "the clocks of its zone leave it out"

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


def is_left_out(value: datetime) -> bool:
    """Whether an aware time is none: when clocks are put forward, they show no such time.

    There, and only there, the difference to UTC would be larger the second time.
    """
    first, second = value.replace(fold=0).utcoffset(), value.replace(fold=1).utcoffset()
    return first is not None and second is not None and first < second
