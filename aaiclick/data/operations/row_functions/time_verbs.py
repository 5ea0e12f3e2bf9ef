"""Functions of times: attach, drop and convert time zones, format times, truncate them to a unit.

ClickHouse truncates times before 1970 towards zero, moves local times that clocks skip, and picks one of two times that
clocks show twice. Here times before 1970 are rounded down, and the other two cases are refused.
"""

from __future__ import annotations

import re

from aaiclick.data.operations.operation import Operation, gives
from aaiclick.data.sql import quoting
from aaiclick.data.sql.zones import IS_NONE, IS_TWICE, OFFSET, SECONDS, in_zone, moment, named
from aaiclick.data.typing.expression_types import TEXT, always
from aaiclick.data.typing.grammar import Type, is_zone
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")

_ANY_ZONE = "'\\\\(\\'[^\\']*\\'\\\\)|, \\'[^\\']*\\''"
_WITHOUT_ZONE = f"replaceRegexpOne(toTypeName(t), {_ANY_ZONE}, '')"
"""The type of the time `t`, without its zone."""

_OF_NUMBER = f"replaceRegexpOne({_WITHOUT_ZONE}, 'DateTime(\\\\)*)$', 'DateTime64(0)\\\\1')"
"""The same type, with DateTime replaced by DateTime64(0): a number of seconds can be cast to it."""

_CODES = {code: f"%{code}" for code in "aAwdbBmyYHIpMSfzjGuVFT%"} | {"A": "%W", "B": "%M", "M": "%i"}
"""Python's format codes, and ClickHouse's equivalents."""

_CODE = re.compile("%(.?)", re.DOTALL)


def localized(zone: str | None) -> Operation:
    """Attach a zone to times that have none; with None, drop their zone and keep the local time."""
    is_off = (f"{SECONDS.format('made')} != seconds", "it is out of the range of its type")
    if zone is None:
        naive = named(_checked("made", is_off), made=f"CAST(CAST(seconds, {_OF_NUMBER}), {_WITHOUT_ZONE})")
        naive = named(naive, seconds=f"({SECONDS.format('t')} + timezoneOffset(t))")
        return Operation(named(naive, t="{0}"), makes="naive")
    moments = named(
        _checked("made", is_off), made=moment(zone_of(zone)), seconds=f"({SECONDS.format('wall')} - {OFFSET})"
    )
    left_out, twice = f"the clocks of {zone} skip it", f"the clocks of {zone} show it twice"
    found = _checked(moments, (IS_NONE, left_out), (IS_TWICE, twice))
    return Operation(in_zone("{0}", zone, found), takes="naive", makes="aware")


def _checked(value: str, *reasons: tuple[str, str]) -> str:
    """Return SQL for a value, with an error for each reason that holds. The value is written twice."""
    told = ((wrong, quoting.text(f"a time is refused: {why}")) for wrong, why in reasons)
    checks = " + ".join(f"throwIf(ifNull({wrong}, 0), {why})" for wrong, why in told)
    return f"if({checks} = 0, {value}, {value})"


def converted(zone: str) -> Operation:
    """Convert times to another zone; they remain the same moments."""
    return Operation(f"toTimeZone({{0}}, {quoting.text(zone_of(zone))})", takes="aware", makes="aware")


def zone_of(zone: object) -> str:
    """Return the name of a zone; raise InputError if it is not known."""
    if not isinstance(zone, str) or not is_zone(zone):
        hint = "Write it as in 'Europe/Berlin' or 'UTC'."
        raise InputError(field="zone", value=shown(repr(zone)), rule="there is no such time zone", hint=hint)
    return zone


def written(form: str) -> Operation:
    """Format times by Python's format codes."""
    if not isinstance(form, str):
        raise InputError(
            field="strftime", value=shown(repr(form)), rule="it must be a text such as '%Y-%m-%d'", hint=""
        )
    codes = _CODE.findall(form)
    for code in codes:
        if code not in _CODES:
            known = " ".join(f"%{each}" for each in sorted(_CODES))
            raise InputError(
                field="strftime", value=shown(repr(f"%{code}")), rule=f"it must be one of {known}", hint=""
            )
    text = quoting.text(_CODE.sub(lambda found: _CODES[found[1]], form)).replace("{", "{{").replace("}", "}}")
    return gives(f"formatDateTime({{0}}, {text})", TEXT)._replace(takes="aware" if "z" in codes else "")


def begun(unit: str) -> Operation:
    """Truncate times to the unit; for weeks and longer units the result is a date."""
    if unit not in UNITS:
        hint = did_you_mean(str(unit), UNITS)
        raise InputError(
            field="start_of", value=shown(repr(unit)), rule=f"it must be one of {', '.join(UNITS)}", hint=hint
        )
    whole = "{0}" if unit in UNITS[:2] else "toStartOfSecond(toDateTime64({0}, 6))"
    words = f"dateTrunc('{unit}', {whole})"
    if unit in UNITS[: UNITS.index("week")]:
        return Operation(words, times=slice(1))
    return Operation(words, typed=always(Type("Date32"))(words), timed=always(Type("Date32"))(words))
