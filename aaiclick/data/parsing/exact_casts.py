"""SQL of casts that change no value. ClickHouse's `accurateCast` is not accurate for times and decimals.

It turns 2024-02-30 into the first of March, cuts digits of a second, wraps 1950 to 2086 in a DateTime, and writes a
time with a zone without its offset.
"""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data.clocks import Clock
from aaiclick.data.operations import Operation
from aaiclick.data.parsing.file_options import Options
from aaiclick.data.parsing.text_values import reading
from aaiclick.data.sql import quoting
from aaiclick.data.sql.zones import named
from aaiclick.data.typing.expression_types import Kind, Worded, maybe
from aaiclick.data.typing.grammar import Type, parse
from aaiclick.errors import InputError

_DAYS = ("Date", "Date32")
_TIMES = (*_DAYS, "DateTime", "DateTime64")
_IS_TEXT = "match(toTypeName(v), '^((Nullable|LowCardinality)\\\\()*(Fixed)?String')"
_IS_TIME = "match(toTypeName(v), '^((Nullable|LowCardinality)\\\\()*DateTime')"
_DIGITS_FIT = (
    "if(match(toString(v), '[eE]'), toFloat64(made) = toFloat64OrNull(toString(v)), "
    "NOT match(toString(v), '[.][0-9]{{{0}}}[0-9]*[1-9]'))"
)
"""SQL: whether a text has no more digits after the point than the decimal keeps."""
_WITH_OFFSET = "concat(toString(v), replaceRegexpOne(formatDateTime(v, '%z'), '(..)$', ':\\\\1'))"


def exact_cast(value: str, kind: str, clock: Clock) -> str:
    """Return SQL that casts a value, or raises an error where the cast would change it.

    `clock` says whether the value is a time with a zone; the day of a time is the one on its clock.
    """
    wanted = parse(kind)
    if wanted.bare.name == "String" and clock == "aware":
        value = named(_WITH_OFFSET, v=value)
    if wanted.bare.name not in (*_TIMES, "Decimal"):
        return _accurate(value, wanted)
    told = quoting.text(f"a value is not a {wanted.bare}, or would be changed")
    checked = f"if(throwIf(NOT ifNull({_fits(wanted.bare)}, 1), {told}) = 0, made, made)"
    return named(named(checked, made=_accurate("v", wanted)), v=value)


def _accurate(value: str, wanted: Type) -> str:
    """Return an `accurateCast` that fails on every bad value; ClickHouse's own gives NULL if the type is Nullable."""
    if wanted.is_nullable:
        made = _accurate(f"assumeNotNull({value})", wanted.bare)
        return f"CAST(if(isNull({value}), NULL, {made}), {quoting.text(str(wanted))})"
    if wanted.name == "Array" and _holds_null(wanted):
        return f"arrayMap(v_ -> {_accurate('v_', wanted.parts[0])}, {value})"
    if wanted.name in ("Tuple", "Map") and _holds_null(wanted):
        rule = "a cast to Nullable types inside tuples and maps would lose values that do not fit"
        raise InputError(field="cast", value=str(wanted), rule=rule, hint="Cast the parts.")
    return f"accurateCast({value}, {quoting.text(str(wanted))})"


def _holds_null(kind: Type) -> bool:
    return kind.is_nullable or any(map(_holds_null, kind.parts))


def _fits(wanted: Type) -> str:
    """Return SQL that checks that `made` equals the value `v` it was cast from; for a text, that it means `made`."""
    if wanted.name == "Decimal":
        return f"multiIf({_IS_TEXT}, {_DIGITS_FIT.format(wanted.numbers[1])}, CAST(made, toTypeName(v)) = v)"
    found = reading(wanted, "toString(v)", Options())
    assert found is not None, "all these are read from texts"
    of_time = f"{_IS_TIME}, substring(toString(v), 1, 10) = toString(made), "
    back = "CAST(made, toTypeName(v)) = v"
    return f"multiIf({_IS_TEXT}, {found.fits}, {of_time if wanted.name in _DAYS else ''}{back})"


def parsed(kind: str) -> Operation:
    """Return the operation `parse(kind)`: the exact value of a text, or None."""
    wanted = parse(kind)
    found = reading(wanted.bare, "t", Options())
    if found is None:
        raise InputError(field="parse", value=kind, rule="texts cannot be read as this type", hint="")
    made = maybe(wanted.bare)
    value = f"if(ifNull({found.fits}, 0), {found.value}, NULL)".replace("{", "{{").replace("}", "}}")
    words = f"CAST({named(value, t='{0}')}, {quoting.text(str(made))})"

    def typing(kinds: Sequence[Kind]) -> Worded | None:
        (given,) = kinds
        if given is not None and given.bare.name not in ("String", "FixedString"):
            hint = "cast(type) converts values of other types."
            raise InputError(field="parse", value=str(given), rule="it needs texts", hint=hint)
        return Worded(words, made)

    return Operation(words, truth=wanted.bare.name == "Bool", typed=typing, makes=wanted.clock)
