"""Writes names and Python values as SQL; the only module that quotes anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from aaiclick.data.clocks import LEFT_OUT, is_left_out, seconds_in
from aaiclick.data.display import glimpse
from aaiclick.errors import InputError
from aaiclick.urls import shown

NAME_BYTES_MAX = 200
"""ClickHouse stores a file for each column; longer names exceed the limit of file names."""

YEARS = (1900, 2299)
"""The years of Date32 and DateTime64; older servers silently change other years."""

_MICROSECONDS = "%Y-%m-%d %H:%M:%S.%f"
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "`": "\\`", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"})


def name(text: str) -> str:
    """Return the quoted name of a table or column."""
    return f"`{text.translate(_ESCAPES)}`"


def read_as(table: str, kinds: Mapping[str, str]) -> str:
    """Return a query of a quoted table that casts some columns to the given types.

    Used for times without a zone: the table's own type would have the zone of the server.
    """
    columns = ", ".join(f"CAST({name(column)}, {text(kind)}) AS {name(column)}" for column, kind in kinds.items())
    return f"SELECT *{f' REPLACE ({columns})' if columns else ''} FROM {table}"  # noqa: S608 (quoted)


def check_column(text: object) -> str:
    """Return the text if it is a valid name of a column, else raise InputError."""
    rule = ""
    if not isinstance(text, str):
        rule = "the name of a column must be a text"
    elif not text:
        rule = "it is empty"
    elif len(text.encode("utf-8", "surrogatepass")) > NAME_BYTES_MAX:
        rule = f"it is longer than {NAME_BYTES_MAX} bytes"
    elif any(ord(sign) < 32 or 0xD800 <= ord(sign) <= 0xDFFF for sign in text):
        rule = "it has control characters or half of a surrogate pair"
    if rule:
        raise InputError(field="column", value=shown(repr(text)), rule=rule, hint="Rename it.")
    assert isinstance(text, str)
    return text


def is_column(text: str) -> bool:
    """Return whether the text is a valid name of a column."""
    try:
        check_column(text)
    except InputError:
        return False
    return True


def text(value: str) -> str:
    """Return a quoted text; raise InputError for half of a surrogate pair, which UTF-8 cannot encode."""
    if not value.isascii() and any(0xD800 <= ord(sign) <= 0xDFFF for sign in value):
        raise _refused(value, "it has a lone surrogate")
    return f"'{value.translate(_ESCAPES)}'"


def literal(value: object) -> str:
    """Return a Python value as an SQL expression of the same value and, where ClickHouse has it, the same type."""
    try:
        return _literal(value)
    except RecursionError:
        raise _refused(value, "it is nested too deeply, or contains itself") from None


def _literal(value: object) -> str:
    kind = type(value)
    write = _WRITERS.get(kind)
    if write is None and kind.__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return literal(_of_numpy(value))
    if write is None:
        rule = f"a {kind.__name__} cannot be a value in a query"
        raise _refused(value, rule, "Make an Object of it, or convert it first.")
    return write(value)


def _of_numpy(value: Any) -> object:
    """Convert a numpy scalar to Python. For a datetime64 in nanoseconds, `item()` would give an int."""
    if type(value).__name__ != "datetime64":
        return value.item()
    micros = value.astype("datetime64[us]")
    if micros.astype(value.dtype) != value:
        raise _refused(value, "it is not a time, or has nanoseconds")
    return micros.item().date() if value.dtype.name == "datetime64[D]" else micros.item()


def _refused(value: object, rule: str, hint: str = "") -> InputError:
    return InputError(field="value", value=glimpse(value), rule=rule, hint=hint)


def _integer(value: int) -> str:
    if -(2**63) <= value < 2**64:
        return str(value) if value >= 0 else f"({value})"
    if -(2**255) <= value < 2**255:
        return f"toInt256('{value}')"
    raise _refused(value, "it has more than 256 bits")


def _float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "(-inf)"
    return f"toFloat64({value!r})" if value.is_integer() else repr(value) if value >= 0 else f"({value!r})"


def _date(value: date) -> str:
    if not YEARS[0] <= value.year <= YEARS[1]:
        raise _refused(value, f"ClickHouse holds the years {YEARS[0]} to {YEARS[1]}")
    return f"toDate32('{value.isoformat()}')"


def _datetime(value: datetime) -> str:
    if not YEARS[0] <= value.year <= YEARS[1]:
        raise _refused(value, f"ClickHouse holds the years {YEARS[0]} to {YEARS[1]}")
    if value.tzinfo is None:
        return f"toDateTime64('{value.strftime(_MICROSECONDS)}', 6)"
    if value.utcoffset() is None:
        raise _refused(value, "its zone gives no offset from UTC")
    if is_left_out(value):
        raise _refused(value, LEFT_OUT, "Give a time that the clocks show.")
    return f"toDateTime64('{value.astimezone(UTC).strftime(_MICROSECONDS)}', 6, 'UTC')"


def _decimal(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise _refused(value, "NaN and infinity are not decimals")
    scale = max(0, -exponent)
    digits = max(value.adjusted() + 1, 1) + scale
    if digits > 76:
        raise _refused(value, "it has more than 76 digits")
    bits = next(bits for most, bits in ((9, 32), (18, 64), (38, 128), (76, 256)) if digits <= most)
    return f"toDecimal{bits}('{value:f}', {scale})"


def _sequence(value: list[object] | tuple[object, ...]) -> str:
    return f"[{', '.join(map(_literal, value))}]"


def _mapping(value: Mapping[object, object]) -> str:
    return f"map({', '.join(_literal(part) for pair in value.items() for part in pair)})"


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "NULL",
    bool: lambda value: "true" if value else "false",
    int: _integer,
    float: _float,
    str: text,
    bytes: lambda value: f"unhex('{value.hex()}')",
    date: _date,
    datetime: _datetime,
    timedelta: lambda value: _decimal(seconds_in(value)),
    Decimal: _decimal,
    UUID: lambda value: f"toUUID('{value}')",
    list: _sequence,
    tuple: _sequence,
    dict: _mapping,
}
