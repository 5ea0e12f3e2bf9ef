"""Calendar arithmetic: add days, months or years at the same time of day; find the last day of a period."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aaiclick.data.operations.additions import DATE, day_of, digits_of, is_day, is_time, ticked
from aaiclick.data.operations.operation import Applied, Operation
from aaiclick.data.operations.row_functions.time_verbs import UNITS, localized
from aaiclick.data.sql import quoting
from aaiclick.data.typing.expression_types import Kind, Worded, always, is_whole, like
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import null_or
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

_BEYOND = quoting.text("a time is refused: it is out of the range of its type")
_DAYS_OF = {"days": 1, "weeks": 7}
_MONTHS_OF = {"months": 1, "quarters": 3, "years": 12}

_MONTHS_ON = "(toYear({{0}}) * 12 + toMonth({{0}}) - 1 + toInt128({{1}}) * {months})"
_MONTHS = (
    "addMonths({moment}, toInt64({{1}}) * {months} + "
    f"throwIf({_MONTHS_ON} < {1900 * 12} OR {_MONTHS_ON} >= {2300 * 12}, {_BEYOND}))"
)


def stepped(unit: str) -> Callable[[object], Applied]:
    """Return a function that adds a number of days, weeks, months, quarters or years.

    A day that the target month does not have becomes its last. Times with a zone are moved in local time; a result that
    the zone's clocks skip or show twice raises an error.
    """

    def make(count: object) -> Applied:
        step = {**_DAYS_OF, **_MONTHS_OF}[unit]
        plain = f"{'addDays' if unit in _DAYS_OF else 'addMonths'}({{0}}, {{1}} * {step})"

        def typing(kinds: Sequence[Kind]) -> Worded | None:
            return _stepped(unit, kinds)

        return Applied(Operation(plain, 2, 2, times=slice(1), apart=True, typed=typing, timed=typing), (count,))

    return make


def _stepped(unit: str, kinds: Sequence[Kind]) -> Worded | None:
    moment, count = kinds
    if moment is None or count is None:
        return None
    if not is_whole(count):
        raise InputError(field=f"add_{unit}", value=str(count), rule="it must be a whole number", hint="")
    if is_day(moment):
        return Worded(null_or(_day(unit), kinds), like(DATE, *kinds))
    if not is_time(moment):
        hint = "Make a time or day of it with strptime(form) or cast(date)."
        raise InputError(field=f"add_{unit}", value=str(moment), rule="it only moves days and times", hint=hint)
    digits, zone = digits_of(moment), moment.bare.zone
    if zone in ("", "UTC"):
        words = _naive(unit, "{0}", digits, zone)
    else:  # moved in local time, then localized again
        shown_by_clocks = localized(None).sql
        words = localized(zone).sql.replace("{0}", _naive(unit, "{0}", digits, "").replace("{0}", shown_by_clocks))
    return Worded(null_or(words, kinds), like(Type("DateTime64", numbers=(digits,), zone=zone), *kinds))


def _day(unit: str) -> str:
    if unit in _DAYS_OF:
        return day_of(f"toInt128(toInt32(toDate32({{0}}))) + toInt128({{1}}) * {_DAYS_OF[unit]}")
    return _MONTHS.format(moment="toDate32({0})", months=_MONTHS_OF[unit])


def _naive(unit: str, moment: str, digits: int, zone: str) -> str:
    if unit in _DAYS_OF:
        seconds = f"toInt128({{1}}) * {_DAYS_OF[unit] * 86_400 * 10 ** (6 if digits <= 6 else 9)}"
        return ticked(moment, f"+ {seconds}", digits, zone)
    return _MONTHS.format(moment=f"toDateTime64({moment}, {digits})", months=_MONTHS_OF[unit])


_LAST = {
    "week": "addDays(dateTrunc('week', {0}), 6)",
    "month": "subtractDays(addMonths(dateTrunc('month', {0}), 1), 1)",
    "quarter": "subtractDays(addMonths(dateTrunc('quarter', {0}), 3), 1)",
    "year": "subtractDays(addMonths(dateTrunc('year', {0}), 12), 1)",
}


def ended(unit: str) -> Operation:
    """Return the last day of the week, month, quarter or year."""
    if unit not in _LAST:
        hint = did_you_mean(str(unit), _LAST)
        if unit in UNITS:
            hint = f"The next unit begins at start_of({unit!r}) + timedelta({unit}s=1)."
        raise InputError(
            field="end_of", value=shown(repr(unit)), rule=f"it must be one of {', '.join(_LAST)}", hint=hint
        )
    words = _LAST[unit].replace("{0}", "toDate32({0})")
    return Operation(words, typed=always(DATE)(words), timed=always(DATE)(words))
