"""Totals that can be asked for in more than one way; those without a choice are in the table of operations alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from aaiclick.data.operations import AGGREGATES, Operation, sequences, totals
from aaiclick.data.operations.operation import only_where
from aaiclick.data.operations.totals import Degrees
from aaiclick.data.operations.windows import checked_count
from aaiclick.data.query.expressions import call
from aaiclick.data.query.operators import Make
from aaiclick.errors import InputError

Made = TypeVar("Made")
"""What a total of this kind of column is."""


class Totals(Generic[Made]):
    """Many values into one. None is left out everywhere; with `where`, so are rows for which that is not true."""

    __slots__ = ()

    def _sum_up(self, name: str, operation: Operation, *others: Any, where: Any = None) -> Made:
        """A total of this and of other columns."""
        raise NotImplementedError

    def std(self, *, ddof: Degrees = 1, where: Any = None) -> Made:
        """The standard deviation: of a sample (ddof=1), or of all there is (0)."""
        return self._sum_up("std", totals.spread("std", degrees(ddof)), where=where)

    def var(self, *, ddof: Degrees = 1, where: Any = None) -> Made:
        """The variance: of a sample (ddof=1), or of all there is (0)."""
        return self._sum_up("var", totals.spread("var", degrees(ddof)), where=where)

    def skew(self, *, bias: bool = True, where: Any = None) -> Made:
        """The skewness of all there is, as polars and scipy have it; with bias=False, of a sample, as pandas has it."""
        return self._sum_up("skew", totals.skew(bias=bias), where=where)

    def kurt(self, *, bias: bool = True, where: Any = None) -> Made:
        """How much the kurtosis exceeds that of a normal distribution; with bias=False, of a sample, as in pandas."""
        return self._sum_up("kurt", totals.kurt(bias=bias), where=where)

    def quantile(self, place: float | Sequence[float], *, where: Any = None) -> Made:
        """The value below which such a part of all is, interpolated; of several parts, a list."""
        return self._sum_up("quantile", totals.quantile(place), where=where)

    def approx_quantile(self, place: float | Sequence[float], *, where: Any = None) -> Made:
        """About that value, in little memory (a t-digest)."""
        return self._sum_up("approx_quantile", totals.quantile(place, "quantileTDigest"), where=where)

    def approx_top(self, count: int, *, where: Any = None) -> Made:
        """About the most frequent values, the most frequent first."""
        return self._sum_up("approx_top", totals.most_frequent(checked_count(count, "approx_top")), where=where)

    def approx_histogram(self, bins: int, *, where: Any = None) -> Made:
        """About how many values are in each of so many ranges, which are chosen by the values: (from, to, how many)."""
        return self._sum_up("approx_histogram", totals.histogram(checked_count(bins, "bins")), where=where)

    def first(self, *, order_by: Any = (), where: Any = None) -> Made:
        """The first value in an order; without one, any value."""
        keys = several(order_by)
        operation = totals.first_by(len(keys)) if keys else AGGREGATES["first"]
        return self._sum_up("first", operation, *keys, where=where)

    def last(self, *, order_by: Any, where: Any = None) -> Made:
        """The last value in an order."""
        keys = several(order_by)
        if not keys:
            raise InputError(field="order_by", value="nothing", rule="the last is that of an order", hint="")
        return self._sum_up("last", totals.last_by(len(keys)), *keys, where=where)

    def argmax(self, by: Any, *, where: Any = None) -> Made:
        """The value in the row where another column is greatest."""
        return self._sum_up("argmax", AGGREGATES["argmax"], by, where=where)

    def argmin(self, by: Any, *, where: Any = None) -> Made:
        """The value in the row where another column is least."""
        return self._sum_up("argmin", AGGREGATES["argmin"], by, where=where)

    def collect(
        self,
        *,
        order_by: Any = (),
        descending: bool = False,
        distinct: bool = False,
        limit: int | None = None,
        where: Any = None,
    ) -> Made:
        """A list of the values: in any order, in that of columns, or each once and sorted."""
        keys = several(order_by)
        most = None if limit is None else checked_count(limit, "limit")
        operation = totals.collected(len(keys), descending=descending, distinct=distinct, limit=most)
        return self._sum_up("collect", operation, *keys, where=where)

    # ------------------------------------------------------------ of a time: what happened in which order

    def window_funnel(self, *steps: Any, within: timedelta, where: Any = None) -> Made:
        """How many of these conditions came true one after the other, at most so long after the first; of a time."""
        return self._sum_up("window_funnel", sequences.funnel(len(steps), within), *steps, where=where)

    def sequence_match(self, pattern: str, *conditions: Any, where: Any = None) -> Made:
        """Whether events follow each other as in '(?1).*(?t<=60)(?2)'; of a time."""
        operation = sequences.sequence(pattern, len(conditions), count=False)
        return self._sum_up("sequence_match", operation, *conditions, where=where)

    def sequence_count(self, pattern: str, *conditions: Any, where: Any = None) -> Made:
        """How often events follow each other so, without sharing one; of a time."""
        operation = sequences.sequence(pattern, len(conditions), count=True)
        return self._sum_up("sequence_count", operation, *conditions, where=where)

    def retention(self, *conditions: Any, where: Any = None) -> Made:
        """Whether this condition was ever true; and for each other, whether both were, each in some row."""
        return self._sum_up("retention", sequences.retention(1 + len(conditions)), *conditions, where=where)


class Pairs(Generic[Made]):
    """Totals of two columns, of the rows where both are there."""

    __slots__ = ()

    def _sum_up(self, name: str, operation: Operation, *others: Any, where: Any = None) -> Made:
        """A total of this and of other columns."""
        raise NotImplementedError

    def corr(self, other: Any, *, where: Any = None) -> Made:
        """Pearson's correlation with another column."""
        return self._sum_up("corr", totals.together("corr"), other, where=where)

    def cov(self, other: Any, *, ddof: Degrees = 1, where: Any = None) -> Made:
        """The covariance with another column: of a sample (ddof=1), or of all there is (0)."""
        return self._sum_up("cov", totals.together("cov", degrees(ddof)), other, where=where)


_OF_CONDITIONS = {"window_funnel", "sequence_match", "sequence_count", "retention"}

BY_NAME = frozenset(name for name in (*vars(Totals), *vars(Pairs)) if name[0] != "_") - _OF_CONDITIONS
"""Totals whose choices can be given by name, as groups do: `group_by("k").std("x", ddof=0)`."""


def making(name: str, operation: Operation, others: int, *, has_where: bool) -> Make:
    """What makes a total of a column, so many others, and perhaps a condition."""
    return partial(call, name, only_where(operation, 1 + others) if has_where else operation)


def degrees(value: object) -> Degrees:
    """Degrees of freedom that are left out."""
    if type(value) is int and value in (0, 1):
        return 1 if value else 0
    raise InputError(field="ddof", value=repr(value), rule="1 for a sample, 0 for all there is", hint="")


def several(given: Any) -> tuple[Any, ...]:
    """What was given alone, or as a list."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)
