"""Methods of a column, row by row: its values are the first argument."""

from __future__ import annotations

from collections.abc import Sequence

from aaiclick.data import arithmetic
from aaiclick.data.grammar import Type
from aaiclick.data.kinds import (
    COUNT,
    FLOAT,
    TEXT,
    Kind,
    Typing,
    Worded,
    greatest_kind,
    is_null,
    joint,
    least_kind,
    like,
    maybe,
    same,
)
from aaiclick.data.operations.operation import ALL, OTHERS, Operation, condition, gives, same_as_first
from aaiclick.data.sameness import nans

_BYTE, _YEAR, _LONG = Type("UInt8"), Type("UInt16"), Type("Int64")

_SLICE = "substringUTF8({0}, if({1} < 0, greatest({1}, -toInt64(lengthUTF8({0})) - ({0} = '')), {1} + 1), {2})"
"""From an index, which may be counted from the end: Python's text[start:][:count]."""

_BLANK = "[\\\\s\\\\x0b\\\\x1c-\\\\x1f\\\\x{{85}}\\\\p{{Z}}]"
_STRIP = (
    "if(isValidASCII({0}), trimBoth({0}, ' \\t\\n\\r\\x0b\\x0c\\x1c\\x1d\\x1e\\x1f'), "
    f"replaceRegexpAll({{0}}, '^{_BLANK}+|{_BLANK}+$', ''))"
)
"""Without what Python takes for white space; most texts need no pattern for it."""

_CLIP = "if(isNull({0}), NULL, least(greatest({0}, {1}), {2}))"
_HASH = "cityHash64({0}{args})"


def _hashed(kinds: Sequence[Kind]) -> Worded:
    return Worded(_HASH, like(COUNT, *kinds))


def _clipped(kinds: Sequence[Kind]) -> Kind:
    return maybe(least_kind([greatest_kind(kinds[:2]), kinds[2]]))


_REPLACE = "if(throwIf({1} = '', 'replace: there is no empty text to be found') = 0, replaceAll({0}, {1}, {2}), '')"


def first_known(sql: str) -> Typing:
    """The answer is the first argument that is there."""

    def typing(kinds: Sequence[Kind]) -> Worded:
        needed = next((number for number, kind in enumerate(kinds, 1) if not is_null(kind)), len(kinds))
        kind = joint(kinds[:needed])
        return Worded(sql, kind.bare if kind is not None and not all(map(is_null, kinds)) else kind)

    return typing


FUNCTIONS = {
    # numbers
    "sqrt": gives("sqrt({0})", FLOAT),
    "exp": gives("exp({0})", FLOAT),
    "log": gives("log({0})", FLOAT),
    "log2": gives("log2({0})", FLOAT),
    "log10": gives("log10({0})", FLOAT),
    "sin": gives("sin({0})", FLOAT),
    "cos": gives("cos({0})", FLOAT),
    "tan": gives("tan({0})", FLOAT),
    "floor": same_as_first("floor({0})"),
    "ceil": same_as_first("ceil({0})"),
    "round": Operation("roundBankers({0}{args})", 1, 2, typed=arithmetic.rounded),
    "sign": Operation("sign({0})", typed=nans.sign),
    "clip": Operation(_CLIP, 3, 3, times=ALL, typed=nans.chosen(_CLIP, _clipped)),
    "is_nan": condition("isNaN({0})"),
    # texts
    "upper": gives("upperUTF8({0})", TEXT),
    "lower": gives("lowerUTF8({0})", TEXT),
    "strip": Operation(_STRIP),
    "length": gives("toInt64(lengthUTF8({0}))", _LONG),
    "contains": condition("position({0}, {1}) > 0", 2),
    "startswith": condition("startsWith({0}, {1})", 2),
    "endswith": condition("endsWith({0}, {1})", 2),
    "like": condition("like({0}, {1})", 2),
    "ilike": condition("ilike({0}, {1})", 2),
    "matches": condition("match({0}, {1})", 2),
    "replace": Operation(_REPLACE, 3, 3),
    "extract": Operation("extract({0}, {1})", 2, 2),
    "split": Operation("splitByString({1}, {0})", 2, 2),
    "slice": Operation(_SLICE, 3, 3),
    "join_with": Operation("concat({0}{args})", 2, 100, apart=True),
    # times
    "year": gives("toYear({0})", _YEAR),
    "month": gives("toMonth({0})", _BYTE),
    "day": gives("toDayOfMonth({0})", _BYTE),
    "hour": gives("toHour({0})", _BYTE),
    "minute": gives("toMinute({0})", _BYTE),
    "second": gives("toSecond({0})", _BYTE),
    "weekday": gives("(toDayOfWeek({0}) - 1)", Type("Int16")),
    "date": Operation("toDate32({0})"),
    # lists
    "size": gives("toInt64(length({0}))", _LONG),
    "has": condition("has({0}, {1})", 2),
    # none
    "is_null": condition("isNull({0})"),
    "not_null": condition("isNotNull({0})"),
    "coalesce": Operation("coalesce({0}{args})", 2, 100, alike=ALL, typed=first_known("coalesce({0}{args})")),
    "fill_null": Operation("ifNull({0}, {1})", 2, 2, alike=ALL, typed=first_known("ifNull({0}, {1})")),
    "fill_nan": Operation("if(isNaN({0}), {1}, {0})", 2, 2),
    # choices
    "choose": Operation("if({0}, {1}, {2})", 3, 3, alike=OTHERS, typed=same("if({0}, {1}, {2})", OTHERS)),
    "least": Operation("least({0}{args})", 2, 100, times=ALL, typed=nans.chosen("least({0}{args})", least_kind)),
    "greatest": Operation(
        "greatest({0}{args})",
        2,
        100,
        times=ALL,
        typed=nans.chosen("greatest({0}{args})", greatest_kind),
    ),
    "hash": Operation(_HASH, 1, 100, apart=True, typed=_hashed),
}
"""Methods of a column: its values are the first argument."""
