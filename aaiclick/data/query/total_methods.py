"""Aggregates that take options of their own; those without options exist only in the table of operations."""

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
"""The type that an aggregate of this kind of column returns."""


class Totals(Generic[Made]):
    """Aggregates: many values to one. None is ignored; with `where`, so are rows for which that is not true."""

    __slots__ = ()

    def _sum_up(self, name: str, operation: Operation, *others: Any, where: Any = None) -> Made:
        """Apply the aggregate `operation` to this column and `others`."""
        raise NotImplementedError

    def std(self, *, ddof: Degrees = 1, where: Any = None) -> Made:
        """Return the standard deviation of a sample (ddof=1) or of the population (0)."""
        return self._sum_up("std", totals.spread("std", degrees(ddof)), where=where)

    def var(self, *, ddof: Degrees = 1, where: Any = None) -> Made:
        """Return the variance of a sample (ddof=1) or of the population (0)."""
        return self._sum_up("var", totals.spread("var", degrees(ddof)), where=where)

    def skew(self, *, bias: bool = True, where: Any = None) -> Made:
        """Return the population skewness, as polars and scipy do; with bias=False that of a sample, as pandas does."""
        return self._sum_up("skew", totals.skew(bias=bias), where=where)

    def kurt(self, *, bias: bool = True, where: Any = None) -> Made:
        """Return the excess kurtosis of the population; with bias=False that of a sample, as pandas does."""
        return self._sum_up("kurt", totals.kurt(bias=bias), where=where)

    def quantile(self, place: float | Sequence[float], *, where: Any = None) -> Made:
        """Return the interpolated quantile at `place`, from 0 to 1; for several places, a list."""
        return self._sum_up("quantile", totals.quantile(place), where=where)

    def approx_quantile(self, place: float | Sequence[float], *, where: Any = None) -> Made:
        """Return an approximate quantile, computed in little memory with a t-digest."""
        return self._sum_up("approx_quantile", totals.quantile(place, "quantileTDigest"), where=where)

    def approx_top(self, count: int, *, where: Any = None) -> Made:
        """Return approximately the `count` most frequent values, the most frequent first."""
        return self._sum_up("approx_top", totals.most_frequent(checked_count(count, "approx_top")), where=where)

    def approx_histogram(self, bins: int, *, where: Any = None) -> Made:
        """Return approximately how many values fall into each of `bins` ranges, as (from, to, count).

        The ranges are chosen from the values.
        """
        return self._sum_up("approx_histogram", totals.histogram(checked_count(bins, "bins")), where=where)

    def first(self, *, order_by: Any = (), where: Any = None) -> Made:
        """Return the first value in the order of `order_by`; without an order, any value."""
        keys = several(order_by)
        operation = totals.first_by(len(keys)) if keys else AGGREGATES["first"]
        return self._sum_up("first", operation, *keys, where=where)

    def last(self, *, order_by: Any, where: Any = None) -> Made:
        """Return the last value in the order of `order_by`."""
        keys = several(order_by)
        if not keys:
            raise InputError(field="order_by", value="nothing", rule="the last value needs an order", hint="")
        return self._sum_up("last", totals.last_by(len(keys)), *keys, where=where)

    def argmax(self, by: Any, *, where: Any = None) -> Made:
        """Return the value in the row where `by` is greatest."""
        return self._sum_up("argmax", AGGREGATES["argmax"], by, where=where)

    def argmin(self, by: Any, *, where: Any = None) -> Made:
        """Return the value in the row where `by` is least."""
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
        """Return the values as a list: unordered, ordered by `order_by`, or with `distinct` each once and sorted.

        `descending` reverses either order; `limit` keeps that many elements at most.
        """
        keys = several(order_by)
        most = None if limit is None else checked_count(limit, "limit")
        operation = totals.collected(len(keys), descending=descending, distinct=distinct, limit=most)
        return self._sum_up("collect", operation, *keys, where=where)

    # ------------------------------------------------------------ sequences of events, of a column of times

    def window_funnel(self, *steps: Any, within: timedelta, where: Any = None) -> Made:
        """Return how many of the conditions `steps` came true one after the other, in a column of times.

        All of them must be at most `within` after the first.
        """
        return self._sum_up("window_funnel", sequences.funnel(len(steps), within), *steps, where=where)

    def sequence_match(self, pattern: str, *conditions: Any, where: Any = None) -> Made:
        """Return whether the events match a pattern such as '(?1).*(?t<=60)(?2)', in a column of times.

        (?1) is an event that fulfils the first condition, `t` the seconds since the one before.
        """
        operation = sequences.sequence(pattern, len(conditions), count=False)
        return self._sum_up("sequence_match", operation, *conditions, where=where)

    def sequence_count(self, pattern: str, *conditions: Any, where: Any = None) -> Made:
        """Return how many times the events match the pattern, without overlap, in a column of times."""
        operation = sequences.sequence(pattern, len(conditions), count=True)
        return self._sum_up("sequence_count", operation, *conditions, where=where)

    def retention(self, *conditions: Any, where: Any = None) -> Made:
        """Return a list of booleans: whether this condition was true in some row, then one for each other.

        Each of the others tells whether it and the first condition were true, each in some row.
        """
        return self._sum_up("retention", sequences.retention(1 + len(conditions)), *conditions, where=where)


class Pairs(Generic[Made]):
    """Aggregates of two columns, computed from the rows where both have a value."""

    __slots__ = ()

    def _sum_up(self, name: str, operation: Operation, *others: Any, where: Any = None) -> Made:
        """Apply the aggregate `operation` to this column and `others`."""
        raise NotImplementedError

    def corr(self, other: Any, *, where: Any = None) -> Made:
        """Pearson's correlation with another column."""
        return self._sum_up("corr", totals.together("corr"), other, where=where)

    def cov(self, other: Any, *, ddof: Degrees = 1, where: Any = None) -> Made:
        """Return the covariance with another column: of a sample (ddof=1) or of the population (0)."""
        return self._sum_up("cov", totals.together("cov", degrees(ddof)), other, where=where)


_OF_CONDITIONS = {"window_funnel", "sequence_match", "sequence_count", "retention"}

BY_NAME = frozenset(name for name in (*vars(Totals), *vars(Pairs)) if name[0] != "_") - _OF_CONDITIONS
"""The aggregates whose options a group accepts by keyword: `group_by("k").std("x", ddof=0)`."""


def making(name: str, operation: Operation, others: int, *, has_where: bool) -> Make:
    """Return a function that makes the aggregate from a column, `others` more, and with `has_where` a condition."""
    return partial(call, name, only_where(operation, 1 + others) if has_where else operation)


def degrees(value: object) -> Degrees:
    """Return `value` as ddof; raise InputError unless it is the integer 0 or 1."""
    if type(value) is int and value in (0, 1):
        return 1 if value else 0
    raise InputError(
        field="ddof", value=repr(value), rule="it must be 1 for a sample, or 0 for a whole population", hint=""
    )


def several(given: Any) -> tuple[Any, ...]:
    """Return a list or tuple as a tuple, and a single value as a tuple of one."""
    return tuple(given) if isinstance(given, list | tuple) else (given,)
