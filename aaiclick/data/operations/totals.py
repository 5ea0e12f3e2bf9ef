"""Aggregates: many values to one, for columns, groups and windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from aaiclick.data.arithmetic import checked
from aaiclick.data.operations import products
from aaiclick.data.operations.operation import FIRST, OTHERS, Operation, of_numbers, of_times_too, one_of, total
from aaiclick.data.sameness.nans import poisoned
from aaiclick.data.typing.expression_types import (
    COUNT,
    FLOAT,
    Kind,
    Worded,
    always,
    is_decimal,
    is_float,
    is_null,
    is_whole,
    like,
    maybe,
)
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.integer_types import Whole
from aaiclick.errors import InputError

Degrees = Literal[0, 1]

_FLOATS = Type("Array", (FLOAT,))
_RANGES = Type("Array", (Type("Tuple", (FLOAT, FLOAT, FLOAT)),))
_PLACE = "it must be from 0 to 1"


def spread(function: Literal["std", "var"], ddof: Degrees = 1) -> Operation:
    """Return the standard deviation or variance of a sample (`ddof=1`) or of the population (0).

    It is NaN, not infinite, for a sample of one value.
    """
    made = f"{'stddev' if function == 'std' else 'var'}{'Samp' if ddof else 'Pop'}Stable({{0}}){{over}}"
    text = f"if(isInfinite({made}), nan, {made})"
    return of_numbers(function, total(text, typed=always(FLOAT)(text)))


_VALUES = "groupArray(toFloat64({{0}})){{over}}"
_MEANS = f"arrayWithConstant(length({_VALUES}), assumeNotNull(avg(toFloat64({{{{0}}}})){{{{over}}}}))"
_AWAY = f"arraySum((m, n) -> pow(m - n, {{power}}), {_VALUES}, {_MEANS})"
"""Sum of powers of the distances from the mean. ClickHouse's own functions sum powers of the values, which loses all
precision far from 0.
"""

_COUNT = "toFloat64(count({0}){over})"


def skew(*, bias: bool) -> Operation:
    """Return the skewness of the population, or corrected for a sample (NaN for fewer than three values)."""
    plain = f"(sqrt({_COUNT}) * {_AWAY.format(power=3)} / pow({_AWAY.format(power=2)}, 1.5))"
    text = plain if bias else f"({plain} * if({_COUNT} > 2, sqrt({_COUNT} * ({_COUNT} - 1)) / ({_COUNT} - 2), nan))"
    return of_numbers("skew", total(text, typed=always(FLOAT)(text)))


def kurt(*, bias: bool) -> Operation:
    """Return the excess kurtosis of the population, or corrected for a sample (NaN for fewer than four values)."""
    plain = f"({_COUNT} * {_AWAY.format(power=4)} / pow({_AWAY.format(power=2)}, 2) - 3)"
    factor = f"if({_COUNT} > 3, ({_COUNT} - 1) / (({_COUNT} - 2) * ({_COUNT} - 3)), nan)"
    text = plain if bias else f"((({_COUNT} + 1) * {plain} + 6) * {factor})"
    return of_numbers("kurt", total(text, typed=always(FLOAT)(text)))


# ---------------------------------------------------------------- quantiles


def quantile(places: float | Sequence[float], function: str = "quantileExactInclusive") -> Operation:
    """Return the quantile at `places`, interpolated between two values if need be; for several places, a list."""
    several = isinstance(places, list | tuple)
    wanted = [_place(each) for each in (places if isinstance(places, list | tuple) else [places])]
    if not wanted:
        raise InputError(field="quantile", value="nothing", rule="name at least one quantile", hint="")
    name = function.replace("quantile", "quantiles") if several else function
    head = f"{name}({', '.join(wanted)})"

    def words(kinds: Sequence[Kind]) -> Worded:
        number = "toFloat64({0})" if is_decimal(kinds[0]) or _is_wide(kinds[0]) else "{0}"
        answer = _FLOATS if several else like(FLOAT, *kinds)
        text = f"{head}({number}){{over}}" if "TDigest" not in function else _as_float(f"{head}({number})", several)
        if is_float(kinds[0]):
            missing = f"arrayWithConstant({len(wanted)}, nan)" if several else "nan"
            text = f"if(ifNull(max(isNaN({{0}})){{over}}, 0), {missing}, {text})"
        return Worded(text, answer)

    return of_numbers("quantile", total(words([None]).sql, typed=words))


def _as_float(text: str, several: bool) -> str:
    return f"CAST({text}{{over}}, 'Array(Float64)')" if several else f"toFloat64({text}{{over}})"


def _place(value: object) -> str:
    if type(value) not in (int, float) or not 0 <= value <= 1:  # type: ignore[operator]
        raise InputError(field="quantile", value=repr(value), rule=_PLACE, hint="The median is 0.5.")
    return repr(value)


def _is_wide(kind: Kind) -> bool:
    return is_whole(kind) and kind is not None and Whole(kind).bits > 64


# ---------------------------------------------------------------- one of the values, or several


def _joined(count: int, first: int = 1) -> str:
    """Return several keys as one tuple; NULL if one of them is."""
    names = [f"{{{number}}}" for number in range(first, first + count)]
    if count == 1:
        return names[0]
    missing = " OR ".join(f"isNull({name})" for name in names)
    return f"if({missing}, NULL, tuple({', '.join(names)}))"


def first_by(keys: int) -> Operation:
    """Return the value of the row where the keys are least; rows where the value or a key is None are skipped."""
    return one_of(f"argMinOrNull({{0}}, {_joined(keys)})", 1 + keys)._replace(deciding=OTHERS)


def last_by(keys: int) -> Operation:
    return one_of(f"argMaxOrNull({{0}}, {_joined(keys)})", 1 + keys)._replace(deciding=OTHERS)


def collected(keys: int, *, descending: bool, distinct: bool, limit: int | None) -> Operation:
    """Return the values as a list: unordered, ordered by the keys, or each once and sorted."""
    if distinct and keys:
        hint = "Leave order_by out: distinct values are sorted."
        raise InputError(field="collect", value="order_by with distinct", rule="one of both", hint=hint)
    turn = "arrayReverseSort" if descending else "arraySort"

    def words(kinds: Sequence[Kind]) -> Worded:
        kind, value = kinds[0], "{0}"
        if distinct:
            zeros = "({0} + 0.0)" if is_float(kind) else value
            text = f"{turn}(groupUniqArray({zeros}){{over}})"
        elif keys:
            by = "".join(f", {{{number}}}" for number in range(1, keys + 1))
            pairs = f"arrayFilter(m -> isNotNull(m.1), groupArray(tuple({{0}}, tuple({by[2:]}))){{over}})"
            element = "assumeNotNull(m.1)" if is_null(kind) else "m.1"
            text = f"arrayMap(m -> {element}, {turn}(m -> m.2, {pairs}))"
        else:
            text = f"groupArray{'' if limit is None else f'({limit})'}({{0}}){{over}}"
        if limit is not None and (distinct or keys):
            text = f"arraySlice({text}, 1, {limit})"
        return Worded(text, None if kind is None else Type("Array", (kind.bare,)))

    made = total(words([None] * (1 + keys)).sql, 1 + keys, times=FIRST, deciding=OTHERS, typed=words)
    return made


_MODE = "sumMap(if(isNull({0}), [], [assumeNotNull({value})]), if(isNull({0}), [], [toUInt64(1)])){over}"


def _most_frequent(kinds: Sequence[Kind]) -> Worded:
    counts = _MODE.replace("{value}", "{0} + 0.0" if is_float(kinds[0]) else "{0}")
    found = f"{counts}.1[indexOf({counts}.2, arrayMax({counts}.2))]"
    return Worded(f"if(empty({counts}.1), NULL, {found})", maybe(kinds[0]))


def _truths(sql: str) -> Operation:
    def words(kinds: Sequence[Kind]) -> Worded | None:
        kind = kinds[0]
        if kind is not None and kind.bare.name in ("String", "FixedString", "UUID", "Date", "Date32", "Array", "Map"):
            hint = "Use first() for any one of the values, or a condition: (col('a') == 'x').any()."
            raise InputError(field="any, all", value=str(kind), rule="it needs true or false values", hint=hint)
        return None

    return total(sql, truth=True, typed=words)


def _mean(kinds: Sequence[Kind]) -> Worded | None:
    """Return the mean; of times, in their precision. For no times it is None, where ClickHouse returns 1970."""
    kind = kinds[0]
    is_time = kind is not None and kind.bare.name in ("Date", "Date32", "DateTime", "DateTime64")
    return Worded("avgOrNull({0})", maybe(kind)) if is_time else checked.mean(kinds)


_ABOUT = "ifNull(uniqCombined64({0}){over}, 0)"


def _distinct_about(kinds: Sequence[Kind]) -> Worded:
    return Worded(_ABOUT.replace("{0}", "{0} + 0.0") if is_float(kinds[0]) else _ABOUT, COUNT)


AGGREGATES = {
    "sum": total("ifNull(sum({0}){over}, 0)", typed=checked.total)._replace(
        wrapping=checked.wrapped_total, limited=checked.limited_total
    ),
    "mean": of_times_too(total("avg({0})", times=FIRST, typed=_mean)),
    "min": one_of("minOrNull({0})")._replace(typed=poisoned("minOrNull({0})")),
    "max": one_of("maxOrNull({0})")._replace(typed=poisoned("maxOrNull({0})")),
    "std": spread("std"),
    "var": spread("var"),
    "skew": skew(bias=True),
    "kurt": kurt(bias=True),
    "median": quantile(0.5),
    "quantile": total("quantileExactInclusive({1})({0})", 2),
    "mode": total(_most_frequent([None]).sql, alike=FIRST, typed=_most_frequent),
    "product": of_numbers("product", total(products.UNKNOWN, typed=products.product)),
    "nunique": total("uniqExact({0})", typed=checked.distinct),
    "approx_nunique": total(_ABOUT, typed=_distinct_about),
    "count": total("count({0})", typed=lambda _: Worded("count({0})", COUNT)),
    "any": _truths("toBool(count(if({0} != 0, 1, NULL)){over} > 0)"),
    "all": _truths("toBool(count(if({0} = 0, 1, NULL)){over} = 0)"),
    "first": one_of("anyOrNull({0})"),
    "collect": total("groupArray({0})", times=FIRST),
    "argmax": one_of("argMaxOrNull({0}, {1})", 2)._replace(deciding=OTHERS),
    "argmin": one_of("argMinOrNull({0}, {1})", 2)._replace(deciding=OTHERS),
}
"""Aggregates by name. None is ignored. For no values at all the sum is 0, `all` is true, the mean is NaN, and
aggregates that return one of the values give None.
"""


# ---------------------------------------------------------------- two columns; approximations


def together(function: Literal["corr", "cov"], ddof: Degrees = 1) -> Operation:
    """Return the correlation or covariance, from the rows where both arguments have a value."""
    name = "corrStable" if function == "corr" else f"covar{'Samp' if ddof else 'Pop'}Stable"
    made = f"{name}(toFloat64({{0}}), toFloat64({{1}})){{over}}"
    text = f"if(isInfinite({made}), nan, {made})"
    return of_numbers(function, total(text, 2, typed=always(FLOAT)(text)))


def most_frequent(count: int) -> Operation:
    """Return approximately the `count` most frequent values, the most frequent first."""

    def words(kinds: Sequence[Kind]) -> Worded:
        kind = kinds[0]
        text = f"topK({count})({{0}} + 0.0)" if is_float(kind) else f"topK({count})({{0}})"
        return Worded(text, None if kind is None else Type("Array", (kind.bare,)))

    return total(words([None]).sql, times=FIRST, typed=words)


def histogram(bins: int) -> Operation:
    """Return approximately the (from, to, count) of each of `bins` ranges, which are chosen from the values."""
    text = f"histogram({bins})(toFloat64({{0}}))"
    return of_numbers("approx_histogram", total(text, typed=lambda _: Worded(text, _RANGES)))
