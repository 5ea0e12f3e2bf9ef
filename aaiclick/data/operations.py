"""What can be done to values: one table, from the Python name to ClickHouse's words.

`{0}`, `{1}` … are the arguments. `//`, `%` and rounding are Python's, where ClickHouse's differ. The rest is
ClickHouse's: what is computed with None is None; `/` by zero gives infinity or NaN, of decimals it is refused; `//` and
`%` by zero are refused. `//` gives whole numbers, `**` floats. Whole numbers and decimals beyond the range of the type
of the answer are refused (`arithmetic`), where the types are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aaiclick.data import arithmetic, bits
from aaiclick.data.clocks import Clock
from aaiclick.data.grammar import Type
from aaiclick.data.kinds import (
    COUNT,
    FLOAT,
    TEXT,
    Kind,
    Typing,
    Worded,
    always,
    found,
    greatest_kind,
    is_null,
    joint,
    least_kind,
    like,
    maybe,
    same,
)


class Operation(NamedTuple):
    """One thing that can be done to values."""

    sql: str
    """With every argument in its place; `{args}` stands for all that are left."""
    least: int = 1
    most: int = 1
    truth: bool = False
    """Its answer is true or false."""
    truth_sql: str | None = None
    """What to say instead when every argument is known to be true or false."""
    alike: slice = slice(0)
    """The arguments that its answer is one of: if these are true or false, so is the answer."""
    many: bool = False
    """It looks at many rows. With `over`, `{over}` is where the rows around are told; otherwise at the end."""
    frame: str | None = None
    """Which rows around are seen with an order; without it, those up to the row itself."""
    times: slice = slice(0)
    """The arguments whose times its answer is one of, besides those of `alike`."""
    cancels: bool = False
    """Of two times its answer is none."""
    compares: bool = False
    """A text beside a time is read as one."""
    apart: bool = False
    """Its arguments have nothing to do with each other: one may be a time with a zone and another without."""
    takes: Clock = ""
    """What its first argument must be, if it is known."""
    makes: Clock = ""
    """What its answer is."""
    typed: Typing | None = None
    """Says it by the types of the arguments, and tells the type of the answer; without it, that is not known."""
    wrapping: Typing | None = None
    """The same without checks: what `wrapping()` asks for."""


def _two(sql: str, truth_sql: str | None = None, typed: Typing | None = None) -> Operation:
    return Operation(sql, 2, 2, truth_sql=truth_sql, typed=typed)


def _moved(sign: str) -> Operation:
    return _checked(sign)._replace(times=slice(None), cancels=True)


def _checked(sign: str) -> Operation:
    words = f"({{0}} {sign} {{1}})"
    return Operation(words, 2, 2, typed=arithmetic.added(sign), wrapping=arithmetic.wrapped(sign))


def _gives(sql: str, kind: Type, least: int = 1, most: int | None = None) -> Operation:
    """Its answer is of one type, or None."""
    return Operation(sql, least, most or least, typed=always(kind)(sql))


def _same(sql: str, least: int = 1, most: int = 1) -> Operation:
    """Its answer is of the type of its first argument."""
    return Operation(sql, least, most, typed=same(sql))


def _first_known(sql: str) -> Typing:
    """The answer is the first argument that is there."""

    def typing(kinds: Sequence[Kind]) -> Worded:
        needed = next((number for number, kind in enumerate(kinds, 1) if not is_null(kind)), len(kinds))
        kind = joint(kinds[:needed])
        return Worded(sql, kind.bare if kind is not None and not all(map(is_null, kinds)) else kind)

    return typing


def _compared(sign: str) -> Operation:
    return Operation(f"toBool({{0}} {sign} {{1}})", 2, 2, truth=True, compares=True)


def _total(
    sql: str,
    arguments: int = 1,
    *,
    truth: bool = False,
    alike: slice = slice(0),
    times: slice = slice(0),
    typed: Typing | None = None,
) -> Operation:
    return Operation(
        sql, arguments, arguments, truth=truth, alike=alike, many=True, times=times, apart=True, typed=typed
    )


def _spread(function: str) -> Operation:
    """Of one value it is NaN, not infinite."""
    made = f"{function}({{0}}){{over}}"
    text = f"if(isInfinite({made}), nan, {made})"
    return _total(text, typed=always(FLOAT)(text))


def _one_of(sql: str, arguments: int = 1) -> Operation:
    """A total that is one of the values, or None."""
    return _total(sql, arguments, alike=_FIRST, typed=found(sql))


def _window(
    sql: str,
    least: int = 1,
    most: int = 1,
    *,
    alike: slice = slice(0),
    frame: str | None = None,
    typed: Typing | None = None,
) -> Operation:
    return Operation(sql, least, most, alike=alike, many=True, frame=frame, typed=typed)


def _test(sql: str, least: int = 1, most: int | None = None) -> Operation:
    return Operation(f"toBool({sql})", least, most or least, truth=True)


ALL_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_FIRST, _OTHERS, _ALL = slice(1), slice(1, None), slice(None)
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


def _least(kinds: Sequence[Kind]) -> Worded:
    return Worded("least({0}{args})", least_kind(kinds))


def _greatest(kinds: Sequence[Kind]) -> Worded:
    return Worded("greatest({0}{args})", greatest_kind(kinds))


def _hashed(kinds: Sequence[Kind]) -> Worded:
    return Worded(_HASH, like(COUNT, *kinds))


def _clipped(kinds: Sequence[Kind]) -> Worded:
    return Worded(_CLIP, maybe(least_kind([greatest_kind(kinds[:2]), kinds[2]])))


_REPLACE = "if(throwIf({1} = '', 'replace: there is no empty text to be found') = 0, replaceAll({0}, {1}, {2}), '')"

OPERATORS = {
    "add": _moved("+"),
    "sub": _moved("-"),
    "mul": _checked("*"),
    "truediv": _two("({0} / {1})", typed=arithmetic.divided),
    "floordiv": _two(arithmetic.FLOOR, typed=arithmetic.floor_divided),
    "mod": _two(arithmetic.REMAINDER, typed=arithmetic.remainder),
    "pow": _gives("pow({0}, {1})", FLOAT, 2),
    "lt": _compared("<"),
    "le": _compared("<="),
    "gt": _compared(">"),
    "ge": _compared(">="),
    "eq": _compared("="),
    "ne": _compared("!="),
    "and": _two("bitAnd({0}, {1})", "toBool({0} AND {1})", bits.bitwise("bitAnd")),
    "or": _two("bitOr({0}, {1})", "toBool({0} OR {1})", bits.bitwise("bitOr")),
    "xor": _two("bitXor({0}, {1})", "toBool(xor({0}, {1}))", bits.bitwise("bitXor")),
    "lshift": _two("bitShiftLeft({0}, {1})", typed=bits.shifted)._replace(wrapping=bits.wrapped_shifted),
    "rshift": _two("bitShiftRight({0}, {1})", typed=bits.bits_kept("bitShiftRight({0}, {1})")),
    "neg": Operation("(-{0})", typed=arithmetic.negated, wrapping=arithmetic.wrapped_negated),
    "pos": _same("({0})"),
    "abs": Operation("abs({0})", typed=arithmetic.without_sign),
    "invert": Operation("bitNot({0})", truth_sql="toBool(NOT {0})", typed=bits.bits_kept("bitNot({0})")),
}
"""What Python has signs for."""

FUNCTIONS = {
    # numbers
    "sqrt": _gives("sqrt({0})", FLOAT),
    "exp": _gives("exp({0})", FLOAT),
    "log": _gives("log({0})", FLOAT),
    "log2": _gives("log2({0})", FLOAT),
    "log10": _gives("log10({0})", FLOAT),
    "sin": _gives("sin({0})", FLOAT),
    "cos": _gives("cos({0})", FLOAT),
    "tan": _gives("tan({0})", FLOAT),
    "floor": _same("floor({0})"),
    "ceil": _same("ceil({0})"),
    "round": Operation("roundBankers({0}{args})", 1, 2, typed=arithmetic.rounded),
    "sign": _gives("sign({0})", Type("Int8")),
    "clip": Operation(_CLIP, 3, 3, times=_ALL, typed=_clipped),
    "is_nan": _test("isNaN({0})"),
    # texts
    "upper": _gives("upperUTF8({0})", TEXT),
    "lower": _gives("lowerUTF8({0})", TEXT),
    "strip": Operation(_STRIP),
    "length": _gives("toInt64(lengthUTF8({0}))", _LONG),
    "contains": _test("position({0}, {1}) > 0", 2),
    "startswith": _test("startsWith({0}, {1})", 2),
    "endswith": _test("endsWith({0}, {1})", 2),
    "like": _test("like({0}, {1})", 2),
    "ilike": _test("ilike({0}, {1})", 2),
    "matches": _test("match({0}, {1})", 2),
    "replace": Operation(_REPLACE, 3, 3),
    "extract": Operation("extract({0}, {1})", 2, 2),
    "split": Operation("splitByString({1}, {0})", 2, 2),
    "slice": Operation(_SLICE, 3, 3),
    "join_with": Operation("concat({0}{args})", 2, 100, apart=True),
    # times
    "year": _gives("toYear({0})", _YEAR),
    "month": _gives("toMonth({0})", _BYTE),
    "day": _gives("toDayOfMonth({0})", _BYTE),
    "hour": _gives("toHour({0})", _BYTE),
    "minute": _gives("toMinute({0})", _BYTE),
    "second": _gives("toSecond({0})", _BYTE),
    "weekday": _gives("(toDayOfWeek({0}) - 1)", Type("Int16")),
    "date": Operation("toDate32({0})"),
    # lists
    "size": _gives("toInt64(length({0}))", _LONG),
    "has": _test("has({0}, {1})", 2),
    # none
    "is_null": _test("isNull({0})"),
    "not_null": _test("isNotNull({0})"),
    "coalesce": Operation("coalesce({0}{args})", 2, 100, alike=_ALL, typed=_first_known("coalesce({0}{args})")),
    "fill_null": Operation("ifNull({0}, {1})", 2, 2, alike=_ALL, typed=_first_known("ifNull({0}, {1})")),
    "fill_nan": Operation("if(isNaN({0}), {1}, {0})", 2, 2),
    # choices
    "choose": Operation("if({0}, {1}, {2})", 3, 3, alike=_OTHERS, typed=same("if({0}, {1}, {2})", _OTHERS)),
    "least": Operation("least({0}{args})", 2, 100, times=_ALL, typed=_least),
    "greatest": Operation(
        "greatest({0}{args})",
        2,
        100,
        times=_ALL,
        typed=_greatest,
    ),
    "hash": Operation(_HASH, 1, 100, apart=True, typed=_hashed),
}
"""Methods of a column: its values are the first argument."""

AGGREGATES = {
    "sum": _total("ifNull(sum({0}){over}, 0)", typed=arithmetic.total)._replace(wrapping=arithmetic.wrapped_total),
    "mean": _total("avg({0})", times=_FIRST, typed=arithmetic.mean),
    "min": _one_of("minOrNull({0})"),
    "max": _one_of("maxOrNull({0})"),
    "std": _spread("stddevSampStable"),
    "var": _spread("varSampStable"),
    "median": _total("quantileExactInclusive(0.5)({0})"),
    "quantile": _total("quantileExactInclusive({1})({0})", 2),
    "nunique": _total("uniqExact({0})", typed=arithmetic.distinct),
    "count": _total("count({0})", typed=lambda _: Worded("count({0})", COUNT)),
    "any": _total("toBool(countIf({0} != 0){over} > 0)", truth=True),
    "all": _total("toBool(countIf({0} = 0){over} = 0)", truth=True),
    "first": _one_of("anyOrNull({0})"),
    "collect": _total("groupArray({0})", times=_FIRST),
    "argmax": _one_of("argMaxOrNull({0}, {1})", 2),
    "argmin": _one_of("argMinOrNull({0}, {1})", 2),
}
"""From many values to one. None is left out. Of no values at all the sum is 0, `all` is true, the mean is NaN, and
what would be one of the values is None."""

_LAG, _LEAD = (f"{name}InFrame(toNullable({{0}}){{args}})" for name in ("lag", "lead"))

WINDOWS = {
    "row_number": _window("row_number()", 0, 0, frame=""),
    "rank": _window("rank()", 0, 0, frame=""),
    "lag": _window(_LAG, 1, 3, alike=_FIRST, typed=found(_LAG)),
    "lead": _window(_LEAD, 1, 3, alike=_FIRST, frame=ALL_ROWS, typed=found(_LEAD)),
    "cumsum": _window("sum({0})", typed=arithmetic.total_so_far),
    "cummean": _window("avg({0})", typed=arithmetic.mean),
    "cummin": _window("min({0})", alike=_FIRST, typed=found("min({0})")),
    "cummax": _window("max({0})", alike=_FIRST, typed=found("max({0})")),
}
"""Each row's own value, from the rows around it; see `over`. Where `lag` and `lead` find no row, there is None."""
