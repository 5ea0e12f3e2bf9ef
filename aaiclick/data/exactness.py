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

_DAYS = ("Date", "Date32")
_TIMES = (*_DAYS, "DateTime", "DateTime64")
_IS_TEXT = "match(toTypeName({0}), '^((Nullable|LowCardinality)\\\\()*(Fixed)?String')"
_IS_TIME = "match(toTypeName({0}), '^((Nullable|LowCardinality)\\\\()*DateTime')"
_OFFSET = "replaceRegexpOne(formatDateTime({0}, '%z'), '(..)$', ':\\\\1')"


def exact_cast(value: str, kind: str, clock: Clock) -> str:
    """SQL for a value as another type, or an error. A day of a time is what its clock shows."""
    wanted = parse(kind)
    if wanted.bare.name == "String" and clock == "aware":
        value = f"concat(toString({value}), {_of(_OFFSET, value)})"
    plain = f"accurateCast({value}, {sql.text(kind)})"
    if wanted.bare.name not in _TIMES:
        return plain
    wrong = f"NOT ifNull({_fits(value, plain, wanted.bare)}, 1)"
    told = sql.text(f"a value is no {wanted.bare}, or would be changed")
    return f"if(throwIf({wrong}, {told}) = 0, {plain}, {plain})"


def times_in_cast(kind: str, clock: Clock) -> int:
    """How often the value stands in the text of its cast."""
    return exact_cast("\0", kind, clock).count("\0")


def _of(template: str, value: str) -> str:
    return template.replace("{0}", value)


def _fits(value: str, made: str, wanted: Type) -> str:
    """Whether what was made is the same; of a text, whether it means such a value."""
    found = reading(wanted, f"toString({value})", Options())
    assert found is not None, "all these are read from texts"
    of_time = f"{_of(_IS_TIME, value)}, substring(toString({value}), 1, 10) = toString({made}), "
    back = f"CAST({made}, toTypeName({value})) = {value}"
    return f"multiIf({_of(_IS_TEXT, value)}, {found.fits}, {of_time if wanted.name in _DAYS else ''}{back})"
