"""SQL that reads texts as the values of a type: exactly, or not at all.

ClickHouse's own conversions turn 2024-02-30 into the first of March, 25:00 into one o'clock, and cut decimals. Each
rule here says which texts are valid, and compares the result with the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aaiclick.data.parsing.file_options import Options
from aaiclick.data.sql import quoting, zones
from aaiclick.data.typing.grammar import Type

_NUMBER = "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_SPECIAL = "^(?i)[+-]?(inf|infinity|nan)$"
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
OFFSET = "(Z|[+-][01][0-9]:?[0-5][0-9])"
_DAYS = {"Date": ("1970-01-01", "2149-06-06"), "Date32": ("1900-01-01", "2299-12-31")}


class TextReading(NamedTuple):
    """Two SQL expressions over a text: whether it is a value of the type, and that value (undefined if it is not)."""

    fits: str
    value: str


def reading(kind: Type, text: str, options: Options) -> TextReading | None:
    """Return the expressions that read a text as a type; None if the type cannot be read from texts."""
    rule = _RULES.get(kind.name)
    if rule is None:
        return None
    if kind.name not in ("String", "FixedString"):
        text = f"trimBoth({text})"
    return rule(kind, text, options)


def _match(text: str, pattern: str) -> str:
    return f"match({text}, {quoting.text(pattern)})"


def _string(kind: Type, text: str, _: Options) -> TextReading:
    return TextReading(f"isValidUTF8({text})", text)


def _fixed(kind: Type, text: str, _: Options) -> TextReading:
    return TextReading(f"length({text}) <= {kind.numbers[0]}", text)


def _integer(kind: Type, text: str, _: Options) -> TextReading:
    value = f"to{kind.name}OrNull({text})"
    plain = f"replaceRegexpOne({text}, '^[+]?(-?)0*([0-9])', '\\\\1\\\\2')"
    return TextReading(f"{_match(text, '^[+-]?[0-9]+$')} AND ifNull(toString({value}) = {plain}, 0)", value)


def _pointed(text: str, options: Options) -> tuple[str, str]:
    """Return the text with a decimal point, and the condition that it used the decimal sign of the options."""
    if options.decimal == ".":
        return text, "1"
    return f"replaceOne({text}, ',', '.')", f"position({text}, '.') = 0"


def _float(kind: Type, text: str, options: Options) -> TextReading:
    text, right = _pointed(text, options)
    value = f"to{kind.name}OrNull({text})"
    finite = f"({_match(text, _NUMBER)} AND ifNull(isFinite({value}), 0))"
    return TextReading(f"{right} AND ({finite} OR {_match(text, _SPECIAL)})", value)


def _decimal(kind: Type, text: str, options: Options) -> TextReading:
    text, right = _pointed(text, options)
    digits, scale = kind.numbers
    pattern = f"^[+-]?0*[0-9]{{0,{digits - scale}}}([.][0-9]{{0,{scale}}}0*)?$"
    value = f"accurateCastOrNull({text}, {quoting.text(str(kind))})"
    return TextReading(f"{right} AND {_match(text, pattern)} AND {_match(text, '[0-9]')} AND isNotNull({value})", value)


def _bool(kind: Type, text: str, _: Options) -> TextReading:
    return TextReading(f"lower({text}) IN ('true', 'false', '1', '0')", f"(lower({text}) IN ('true', '1'))::Bool")


def _date(kind: Type, text: str, options: Options) -> TextReading:
    low, high = _DAYS[kind.name]
    if options.date_format:
        form = quoting.text(options.date_format)
        parsed = f"parseDateTime64OrNull({text}, {form}, 'UTC')"
        same = f"ifNull(formatDateTime({parsed}, {form}, 'UTC') = {text}, 0)"
        day = f"toString(toDate32({parsed}))"
        return TextReading(f"{same} AND {day} >= '{low}' AND {day} <= '{high}'", f"to{kind.name}({parsed})")
    valid = f"{_match(text, f'^{_DATE}$')} AND {text} >= '{low}' AND {text} <= '{high}'"
    return TextReading(
        f"{valid} AND ifNull(toString(toDate32OrNull({text})) = {text}, 0)", f"to{kind.name}OrNull({text})"
    )


def _moment(kind: Type, text: str, _: Options) -> TextReading:
    """Return the reading of a time. Without an offset it is a time in the column's zone.

    A time that the zone's clocks skip or show twice does not fit, and neither does a time with an offset if the column
    has no zone.
    """
    places = kind.numbers[0] if kind.numbers else 0
    fraction = f"([.]([0-9]{{1,{places}}}0*))?" if places else "([.]0+)?"
    pattern = f"^{_DATE}[ T]{_CLOCK}{fraction}{OFFSET if kind.zone else '()'}?$"
    value, same = _in_zone(kind, text, places) if kind.zone else _without_zone(text, places)
    day = f"substring({text}, 1, 10)"
    real_day = f"ifNull(toString(toDate32OrNull({day})) = {day}, 0)"
    low, high = "1900-01-01", "2299-12-31"
    if kind.zone:  # with an offset, the day in the column's zone may be another
        low, high = "1900-01-02", "2299-12-30"
    within = f"{day} >= '{low}' AND {day} <= '{'2262-04-10' if places == 9 else high}'"
    if kind.name == "DateTime":
        within += f" AND ifNull(toUnixTimestamp64Second({value}) BETWEEN 0 AND 4294967295, 0)"
    return TextReading(f"{_match(text, pattern)} AND {real_day} AND {within} AND {same}", value)


def _without_zone(text: str, places: int) -> tuple[str, str]:
    """Return the time that a text means, and the condition that the time shows what the text says."""
    value = f"parseDateTime64BestEffortOrNull({text}, {places})"
    local = f"concat(substring({text}, 1, 10), ' ', substring({text}, 12, 8))"
    return value, f"ifNull(substring(toString({value}), 1, 19) = {local}, 0)"


def _in_zone(kind: Type, text: str, places: int) -> tuple[str, str]:
    """Return the moment that a text means, and the condition that there is exactly one such moment."""
    has_offset = _match(text, f"{OFFSET}$")
    moment = f"parseDateTime64BestEffortOrNull({text}, {places}, {quoting.text(kind.zone)})"
    if kind.zone == "UTC":
        return moment, "1"
    wall = f"parseDateTime64BestEffortOrNull({text}, {places}, 'UTC')"
    one = zones.in_zone(wall, kind.zone, f"NOT ({zones.IS_NONE} OR {zones.IS_TWICE})")
    local = zones.in_zone(wall, kind.zone, zones.moment(kind.zone))
    return f"if({has_offset}, {moment}, {local})", f"({has_offset} OR ifNull({one}, 0))"


def _uuid(kind: Type, text: str, _: Options) -> TextReading:
    return TextReading(_match(text, _UUID), f"toUUIDOrNull({text})")


def _address(kind: Type, text: str, _: Options) -> TextReading:
    return TextReading(f"isNotNull(to{kind.name}OrNull({text}))", f"to{kind.name}OrNull({text})")


def _enum(kind: Type, text: str, _: Options) -> TextReading:
    labels = ", ".join(quoting.text(label) for label, _ in kind.members)
    return TextReading(f"{text} IN ({labels})", f"accurateCastOrNull({text}, {quoting.text(str(kind))})")


_RULES: dict[str, Callable[[Type, str, Options], TextReading]] = {
    "String": _string,
    "FixedString": _fixed,
    **{f"{sign}Int{bits}": _integer for sign in ("", "U") for bits in (8, 16, 32, 64, 128, 256)},
    "Float32": _float,
    "Float64": _float,
    "Decimal": _decimal,
    "Bool": _bool,
    "Date": _date,
    "Date32": _date,
    "DateTime": _moment,
    "DateTime64": _moment,
    "UUID": _uuid,
    "IPv4": _address,
    "IPv6": _address,
    "Enum8": _enum,
    "Enum16": _enum,
}
