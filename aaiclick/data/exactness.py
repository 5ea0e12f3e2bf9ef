"""Casts that change no value, in SQL: ClickHouse's `accurateCast` is not accurate where there are times.

It makes the first of March of 2024-02-30, cuts digits of a second, wraps 1950 to 2086 in a DateTime, and writes a time
with a zone as if it had none.
"""

from __future__ import annotations

from aaiclick.data import sql
from aaiclick.data.clocks import Clock
from aaiclick.data.file_options import Options
from aaiclick.data.grammar import Type, parse
from aaiclick.data.texts import reading
from aaiclick.data.zones import named

_DAYS = ("Date", "Date32")
_TIMES = (*_DAYS, "DateTime", "DateTime64")
_IS_TEXT = "match(toTypeName(v), '^((Nullable|LowCardinality)\\\\()*(Fixed)?String')"
_IS_TIME = "match(toTypeName(v), '^((Nullable|LowCardinality)\\\\()*DateTime')"
_WITH_OFFSET = "concat(toString(v), replaceRegexpOne(formatDateTime(v, '%z'), '(..)$', ':\\\\1'))"


def exact_cast(value: str, kind: str, clock: Clock) -> str:
    """SQL for a value as another type, or an error. A day of a time is what its clock shows."""
    wanted = parse(kind)
    if wanted.bare.name == "String" and clock == "aware":
        value = named(_WITH_OFFSET, v=value)
    if wanted.bare.name not in _TIMES:
        return f"accurateCast({value}, {sql.text(kind)})"
    told = sql.text(f"a value is no {wanted.bare}, or would be changed")
    checked = f"if(throwIf(NOT ifNull({_fits(wanted.bare)}, 1), {told}) = 0, made, made)"
    return named(named(checked, made=f"accurateCast(v, {sql.text(kind)})"), v=value)


def _fits(wanted: Type) -> str:
    """Whether what was `made` of `v` is the same; of a text, whether it means such a value."""
    found = reading(wanted, "toString(v)", Options())
    assert found is not None, "all these are read from texts"
    of_time = f"{_IS_TIME}, substring(toString(v), 1, 10) = toString(made), "
    back = "CAST(made, toTypeName(v)) = v"
    return f"multiIf({_IS_TEXT}, {found.fits}, {of_time if wanted.name in _DAYS else ''}{back})"
