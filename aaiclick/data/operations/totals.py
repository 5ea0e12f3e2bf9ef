"""From many values to one: totals of columns, of groups and of windows."""

from __future__ import annotations

from aaiclick.data import arithmetic
from aaiclick.data.kinds import COUNT, FLOAT, Worded, always
from aaiclick.data.operations.operation import FIRST, Operation, one_of, total
from aaiclick.data.sameness.nans import poisoned


def spread(function: str) -> Operation:
    """Of one value it is NaN, not infinite."""
    made = f"{function}({{0}}){{over}}"
    text = f"if(isInfinite({made}), nan, {made})"
    return total(text, typed=always(FLOAT)(text))


AGGREGATES = {
    "sum": total("ifNull(sum({0}){over}, 0)", typed=arithmetic.total)._replace(wrapping=arithmetic.wrapped_total),
    "mean": total("avg({0})", times=FIRST, typed=arithmetic.mean),
    "min": one_of("minOrNull({0})")._replace(typed=poisoned("minOrNull({0})")),
    "max": one_of("maxOrNull({0})")._replace(typed=poisoned("maxOrNull({0})")),
    "std": spread("stddevSampStable"),
    "var": spread("varSampStable"),
    "median": total("quantileExactInclusive(0.5)({0})", typed=poisoned("quantileExactInclusive(0.5)({0})", FLOAT)),
    "quantile": total("quantileExactInclusive({1})({0})", 2, typed=poisoned("quantileExactInclusive({1})({0})", FLOAT)),
    "nunique": total("uniqExact({0})", typed=arithmetic.distinct),
    "count": total("count({0})", typed=lambda _: Worded("count({0})", COUNT)),
    "any": total("toBool(countIf({0} != 0){over} > 0)", truth=True),
    "all": total("toBool(countIf({0} = 0){over} = 0)", truth=True),
    "first": one_of("anyOrNull({0})"),
    "collect": total("groupArray({0})", times=FIRST),
    "argmax": one_of("argMaxOrNull({0}, {1})", 2),
    "argmin": one_of("argMinOrNull({0}, {1})", 2),
}
"""From many values to one. None is left out. Of no values at all the sum is 0, `all` is true, the mean is NaN, and
what would be one of the values is None."""
