"""What can be done to values: one table, from the Python name to ClickHouse's words.

`{0}`, `{1}` … are the arguments. `//`, `%` and rounding are Python's, where ClickHouse's differ. The rest is
ClickHouse's: what is computed with None is None; whole numbers beyond the range of their type wrap around; `/` by zero
gives infinity or NaN; `//` and `%` by zero are refused between whole numbers. `//` gives whole numbers, `**` floats.
"""

from __future__ import annotations

from typing import NamedTuple

from aaiclick.data.clocks import Clock


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


def _two(sql: str, truth_sql: str | None = None) -> Operation:
    return Operation(sql, 2, 2, truth_sql=truth_sql)


def _moved(sql: str) -> Operation:
    return Operation(sql, 2, 2, times=slice(None), cancels=True)


def _compared(sign: str) -> Operation:
    return Operation(f"toBool({{0}} {sign} {{1}})", 2, 2, truth=True, compares=True)


def _total(
    sql: str, arguments: int = 1, *, truth: bool = False, alike: slice = slice(0), times: slice = slice(0)
) -> Operation:
    return Operation(sql, arguments, arguments, truth=truth, alike=alike, many=True, times=times, apart=True)


def _window(sql: str, least: int = 1, most: int = 1, *, alike: slice = slice(0), frame: str | None = None) -> Operation:
    return Operation(sql, least, most, alike=alike, many=True, frame=frame)


def _test(sql: str, least: int = 1, most: int | None = None) -> Operation:
    return Operation(f"toBool({sql})", least, most or least, truth=True)


ALL_ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_FIRST, _ALL = slice(1), slice(None)

_REMAINDER = "modulo(modulo({0}, {1}) + {1}, {1})"
_FLOOR = "(intDiv({0}, {1}) - toInt8((modulo({0}, {1}) != 0) AND (({0} < 0) != ({1} < 0))))"

OPERATORS = {
    "add": _moved("({0} + {1})"),
    "sub": _moved("({0} - {1})"),
    "mul": _two("({0} * {1})"),
    "truediv": _two("({0} / {1})"),
    "floordiv": _two(_FLOOR),
    "mod": _two(_REMAINDER),
    "pow": _two("pow({0}, {1})"),
    "lt": _compared("<"),
    "le": _compared("<="),
    "gt": _compared(">"),
    "ge": _compared(">="),
    "eq": _compared("="),
    "ne": _compared("!="),
    "and": _two("bitAnd({0}, {1})", "toBool({0} AND {1})"),
    "or": _two("bitOr({0}, {1})", "toBool({0} OR {1})"),
    "xor": _two("bitXor({0}, {1})", "toBool(xor({0}, {1}))"),
    "lshift": _two("bitShiftLeft({0}, {1})"),
    "rshift": _two("bitShiftRight({0}, {1})"),
    "neg": Operation("(-{0})"),
    "pos": Operation("({0})"),
    "abs": Operation("abs({0})"),
    "invert": Operation("bitNot({0})", truth_sql="toBool(NOT {0})"),
}
"""What Python has signs for."""

FUNCTIONS = {
    # numbers
    "sqrt": Operation("sqrt({0})"),
    "exp": Operation("exp({0})"),
    "log": Operation("log({0})"),
    "log2": Operation("log2({0})"),
    "log10": Operation("log10({0})"),
    "sin": Operation("sin({0})"),
    "cos": Operation("cos({0})"),
    "tan": Operation("tan({0})"),
    "floor": Operation("floor({0})"),
    "ceil": Operation("ceil({0})"),
    "round": Operation("roundBankers({0}{args})", 1, 2),
    "sign": Operation("sign({0})"),
    "clip": Operation("least(greatest({0}, {1}), {2})", 3, 3, times=_ALL),
    "is_nan": _test("isNaN({0})"),
    # texts
    "upper": Operation("upperUTF8({0})"),
    "lower": Operation("lowerUTF8({0})"),
    "strip": Operation("trimBoth({0})"),
    "length": Operation("toInt64(lengthUTF8({0}))"),
    "contains": _test("position({0}, {1}) > 0", 2),
    "startswith": _test("startsWith({0}, {1})", 2),
    "endswith": _test("endsWith({0}, {1})", 2),
    "like": _test("like({0}, {1})", 2),
    "ilike": _test("ilike({0}, {1})", 2),
    "matches": _test("match({0}, {1})", 2),
    "replace": Operation("replaceAll({0}, {1}, {2})", 3, 3),
    "extract": Operation("extract({0}, {1})", 2, 2),
    "split": Operation("splitByString({1}, {0})", 2, 2),
    "slice": Operation("substringUTF8({0}, {1} + 1, {2})", 3, 3),
    "join_with": Operation("concat({0}{args})", 2, 100, apart=True),
    # times
    "year": Operation("toYear({0})"),
    "month": Operation("toMonth({0})"),
    "day": Operation("toDayOfMonth({0})"),
    "hour": Operation("toHour({0})"),
    "minute": Operation("toMinute({0})"),
    "second": Operation("toSecond({0})"),
    "weekday": Operation("(toDayOfWeek({0}) - 1)"),
    "date": Operation("toDate32({0})"),
    # lists
    "size": Operation("toInt64(length({0}))"),
    "has": _test("has({0}, {1})", 2),
    # none
    "is_null": _test("isNull({0})"),
    "not_null": _test("isNotNull({0})"),
    "coalesce": Operation("coalesce({0}{args})", 2, 100, alike=_ALL),
    "fill_null": Operation("ifNull({0}, {1})", 2, 2, alike=_ALL),
    "fill_nan": Operation("if(isNaN({0}), {1}, {0})", 2, 2),
    # choices
    "choose": Operation("if({0}, {1}, {2})", 3, 3, alike=slice(1, None)),
    "least": Operation("least({0}{args})", 2, 100, times=_ALL),
    "greatest": Operation("greatest({0}{args})", 2, 100, times=_ALL),
    "hash": Operation("cityHash64({0}{args})", 1, 100, apart=True),
}
"""Methods of a column: its values are the first argument."""

AGGREGATES = {
    "sum": _total("sum({0})"),
    "mean": _total("avg({0})", times=_FIRST),
    "min": _total("minOrNull({0})", alike=_FIRST),
    "max": _total("maxOrNull({0})", alike=_FIRST),
    "std": _total("stddevSamp({0})"),
    "var": _total("varSamp({0})"),
    "median": _total("quantileExactInclusive(0.5)({0})"),
    "quantile": _total("quantileExactInclusive({1})({0})", 2),
    "nunique": _total("uniqExact({0})"),
    "count": _total("count({0})"),
    "any": _total("toBool(countIf({0} != 0){over} > 0)", truth=True),
    "all": _total("toBool(countIf({0} = 0){over} = 0)", truth=True),
    "first": _total("anyOrNull({0})", alike=_FIRST),
    "collect": _total("groupArray({0})", times=_FIRST),
    "argmax": _total("argMaxOrNull({0}, {1})", 2, alike=_FIRST),
    "argmin": _total("argMinOrNull({0}, {1})", 2, alike=_FIRST),
}
"""From many values to one. None is left out. Of no values at all the sum is 0, `all` is true, the mean is NaN, and
what would be one of the values is None."""

WINDOWS = {
    "row_number": _window("row_number()", 0, 0, frame=""),
    "rank": _window("rank()", 0, 0, frame=""),
    "lag": _window("lagInFrame(toNullable({0}){args})", 1, 3, alike=_FIRST),
    "lead": _window("leadInFrame(toNullable({0}){args})", 1, 3, alike=_FIRST, frame=ALL_ROWS),
    "cumsum": _window("sum({0})"),
    "cummean": _window("avg({0})"),
    "cummin": _window("min({0})", alike=_FIRST),
    "cummax": _window("max({0})", alike=_FIRST),
}
"""Each row's own value, from the rows around it; see `over`. Where `lag` and `lead` find no row, there is None."""
