"""Sequences of events: windows by time, sessions, funnels and patterns over rows that have a time and conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from aaiclick.data.operations.operation import Operation, of_times_too, total, window
from aaiclick.data.sql import quoting
from aaiclick.data.sql.zones import SECONDS
from aaiclick.data.typing.expression_types import BOOL, COUNT, Kind, Worded, is_null, is_whole, like
from aaiclick.data.typing.grammar import Type
from aaiclick.errors import InputError
from aaiclick.urls import shown

CONDITIONS_MAX = 32
_BILLION = 1_000_000_000
_MOMENT = Type("Int128")
_SINCE_1899 = 2_240_611_200 * _BILLION
"""Nanoseconds that are added to a time to make it unsigned; no ClickHouse time is earlier."""

_STEP = r"\(\?[1-9]\d*\)|\(\?t(?:<=|>=|==|<|>)\d+(?:\.\d+)?\)|\.\*|\."
_SECONDS = re.compile(r"(\(\?t[<>=]+)(\d+(?:\.\d+)?)", re.ASCII)
_PATTERN = re.compile(rf"(?:{_STEP})+", re.ASCII)


# ---------------------------------------------------------------- moments


def sortable(within: timedelta | int) -> Operation:
    """Return times, or whole numbers, as counts of `unit_of(within)`, for a RANGE frame of `units(within)`.

    A None raises an error, and so does a time that is not a multiple of the unit.
    """
    of_times = isinstance(within, timedelta)
    unit = unit_of(within)

    def words(kinds: Sequence[Kind]) -> Worded:
        kind, text = kinds[0], _moment(kinds[0], of_times=of_times)
        value = f"intDiv({text}, {unit})"
        refused = "throwIf(isNull({0}), 'a window by time: a time is None; leave out such rows')"
        refused = f"{refused} + " if is_null(kind) else ""
        if _finest(kind) % unit:
            told = quoting.text(f"a window by time: a time is no multiple of {unit / 1000:g} microseconds; {_COARSER}")
            refused += f"throwIf(ifNull({text}, 0) % {unit} != 0, {told}) + "
        if not refused:
            return Worded(value, _MOMENT)
        return Worded(f"if({refused[:-3]} = 0, {value.replace('{0}', 'assumeNotNull({0})')}, 0)", _MOMENT)

    return Operation(words([None]).sql, typed=words, timed=words)


_COARSER = "sort by col(…).start_of('millisecond'), or take a shorter window"


def _finest(kind: Kind) -> int:
    """Return the nanoseconds of which all values of a time type are multiples; 1 for numbers."""
    if kind is None:
        return 1
    if kind.bare.name in ("Date", "Date32"):
        return 86_400 * _BILLION
    if kind.bare.name.startswith("DateTime"):
        return int(10 ** (9 - (kind.bare.numbers[0] if kind.bare.numbers else 0)))
    return 1


def _moment(kind: Kind, *, of_times: bool) -> str:
    """Return SQL for a time in nanoseconds, or for a whole number, as an Int128.

    Raise InputError for a type that is known to be another.
    """
    if of_times and kind is not None and kind.bare.name in ("Date", "Date32"):
        return f"toInt128(toInt32({{0}})) * {86_400 * _BILLION}"
    if of_times and (kind is None or kind.bare.name.startswith("DateTime")):
        return f"toInt128({SECONDS} * {_BILLION})"
    if not of_times and kind is None:
        return "accurateCast({0}, 'Int128')"
    if not of_times and is_whole(kind) and kind is not None and kind.bare.name not in _TOO_WIDE:
        return "toInt128({0})"
    wanted = "times or days" if of_times else "whole numbers"
    hint = "Give within as a timedelta for times, as a whole number for whole numbers."
    raise InputError(field="order", value=str(kind), rule=f"it must be of {wanted}", hint=hint)


_TOO_WIDE = ("Int256", "UInt256", "UInt128")

UNITS: tuple[int, ...] = tuple(int(10**power) for power in range(10)) + tuple(
    seconds * _BILLION for seconds in (10, 60, 3_600, 86_400)
)
UNITS_MAX = 2**31 - 1
"""ClickHouse's limit for the length of a RANGE window, in units."""


def unit_of(within: timedelta | int) -> int:
    """Return the finest unit, in nanoseconds, that divides the window into at most UNITS_MAX units.

    It is 1 for a number.
    """
    wanted = ticks(within)
    for unit in UNITS if isinstance(within, timedelta) else UNITS[:1]:
        if wanted % unit == 0 and wanted // unit <= UNITS_MAX:
            return unit
    rule = f"it must be a window of at most {UNITS_MAX} units"
    raise InputError(field="within", value=shown(repr(within)), rule=rule, hint="Use a round or a shorter one.")


def units(within: timedelta | int) -> int:
    """Return the length of the window in `unit_of(within)`."""
    return ticks(within) // unit_of(within)


def ticks(within: object) -> int:
    """Return a timedelta in nanoseconds, and an integer unchanged.

    Raise InputError unless the result is above 0 and below 2**63.
    """
    found = 0
    if isinstance(within, timedelta):
        found = (within // timedelta(microseconds=1)) * 1_000
    elif isinstance(within, int) and not isinstance(within, bool):
        found = within
    if not 0 < found < 2**63:
        rule = "it must be a timedelta above 0, at most 292 years, or a whole number if the order is one"
        raise InputError(field="within", value=shown(repr(within)), rule=rule, hint="")
    return found


# ---------------------------------------------------------------- sessions


def begins(gap: timedelta | int) -> Operation:
    """Return whether a row begins a session: it is the first, or more than `gap` after the row before it."""
    longest, of_times = ticks(gap), isinstance(gap, timedelta)

    def words(kinds: Sequence[Kind]) -> Worded:
        text = _moment(kinds[0], of_times=of_times)
        before = f"lagInFrame(toNullable({text}), 1){{over}}"
        return Worded(f"toUInt8(ifNull({text} - {before} > {longest}, 1))", Type("UInt8"))

    return of_times_too(window(words([None]).sql, typed=words))


SESSION = window(
    "if(isNull({1}), NULL, sum({0}){over})",
    2,
    2,
    frame="RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    typed=lambda kinds: Worded("if(isNull({1}), NULL, sum({0}){over})", like(COUNT, kinds[1])),
)
"""The number of sessions begun up to the row; rows of equal time belong to the same one."""


# ---------------------------------------------------------------- events


def _conditions(count: int) -> str:
    if not 1 <= count <= CONDITIONS_MAX:
        raise InputError(field="conditions", value=str(count), rule=f"1 to {CONDITIONS_MAX} of them", hint="")
    listed = "".join(f", toUInt8(ifNull({{{number}}}, 0) != 0)" for number in range(1, 1 + count))
    return listed if count > 1 else f"{listed}, toUInt8(0)"  # the functions of sequences refuse a single condition


def funnel(steps: int, within: timedelta) -> Operation:
    """Return how many of the steps came true in order, at most `within` after the first."""
    head = f"windowFunnel({ticks(_time(within))})"
    return _of_events(f"toUInt64({head}({{moment}}{_conditions(steps)}){{over}})", steps, COUNT)


def sequence(pattern: str, conditions: int, *, count: bool) -> Operation:
    """Return whether events match the pattern, or with `count` how many times."""
    text = quoting.text(_checked(pattern, conditions)).replace("{", "{{").replace("}", "}}")
    listed = f"({{moment}}{_conditions(conditions)}){{over}}"
    if count:
        return _of_events(f"sequenceCount({text}){listed}", conditions, COUNT)
    return _of_events(f"toBool(sequenceMatch({text}){listed})", conditions, BOOL)


def _of_events(text: str, conditions: int, kind: Type) -> Operation:
    def words(kinds: Sequence[Kind]) -> Worded:
        found = _moment(kinds[0], of_times=True)
        return Worded(text.replace("{moment}", f"toUInt64({found} + {_SINCE_1899})"), kind)

    return of_times_too(total(words([None]).sql, 1 + conditions, truth=kind == BOOL, typed=words))


def retention(conditions: int) -> Operation:
    """Return a list: whether the first condition was true in some row, then one for each other condition.

    Each of the others tells whether it and the first condition were true, each in some row.
    """
    head = "toUInt8(ifNull({0}, 0) != 0)"
    others = _conditions(conditions - 1) if conditions > 1 else ", toUInt8(0)"
    text = f"arraySlice(arrayMap(m -> toBool(m), retention({head}{others}){{over}}), 1, {conditions})"
    return total(text, conditions, typed=lambda _: Worded(text, Type("Array", (BOOL,))))


def _time(within: object) -> timedelta:
    if isinstance(within, timedelta):
        return within
    raise InputError(
        field="within", value=shown(repr(within)), rule="it must be a timedelta", hint="timedelta(hours=1)"
    )


def _checked(pattern: str, conditions: int) -> str:
    """Return the pattern with its seconds converted to nanoseconds; raise InputError if it is malformed."""
    rule = (
        "it must be made of (?1) for the first condition, (?t<=60) for seconds since the one before, "
        ". and .* for any events"
    )
    if not _PATTERN.fullmatch(str(pattern)):
        raise InputError(field="pattern", value=shown(repr(pattern)), rule=rule, hint="For example '(?1).*(?2)'.")
    used = {int(number) for number in re.findall(r"\(\?(\d+)\)", pattern)}
    if not used or max(used) > conditions:
        told = f"{conditions} conditions are given"
        raise InputError(field="pattern", value=shown(repr(pattern)), rule=told, hint="They are numbered from 1.")
    return _SECONDS.sub(lambda found: found[1] + str(int(Decimal(found[2]) * _BILLION)), pattern)
