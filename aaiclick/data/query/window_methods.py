"""Window functions of terms: values computed for each row from the rows around it. `over` must follow each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

from aaiclick.data.operations import AGGREGATES, Operation, sequences, windows
from aaiclick.data.operations.operation import framed
from aaiclick.data.query.expressions import Call, Key, call
from aaiclick.data.query.other_names import hint
from aaiclick.data.query.total_methods import Made, Pairs, Totals
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.methods import RollingTotals
else:

    class RollingTotals(Generic[Made]):
        """The aggregates of the table of operations; type checkers find them declared in `methods.pyi`."""


class Windows(Totals[Made]):
    """Window functions: each gives a value per row, computed from the rows of its window."""

    __slots__ = ()

    def shift(self, rows: int = 1) -> Made:
        """Return the value `rows` rows before, or after if `rows` is negative; None where there is no such row."""
        return self._sum_up("shift", windows.shifted(rows))

    def diff(self, rows: int = 1) -> Made:
        """Return each value minus the one `rows` rows before: days for dates, seconds for times."""
        return self._sum_up("diff", windows.difference(rows))

    def pct_change(self, rows: int = 1) -> Made:
        """Return the change relative to the value `rows` rows before: 0.1 is an increase of ten percent."""
        return self._sum_up("pct_change", windows.change(rows))

    def nth_value(self, number: int) -> Made:
        """Return the value of row `number` of the window, counted from 1; None if it has fewer rows."""
        return self._sum_up("nth_value", windows.nth(number))

    def rank(self, method: windows.Method = "min", *, descending: bool = False) -> Made:
        """Return the rank of each value among the others; None for None. `over` must not be given an order.

        Ties get the lowest of their ranks ("min"), the highest ("max") or the "average"; "dense" leaves no rank out,
        "ordinal" gives each row a rank of its own, and "percent" is from 0 to 1.
        """
        return self._sum_up("rank", windows.rank_of(method, descending=descending))

    def ntile(self, parts: int, *, descending: bool = False) -> Made:
        """Return the number, from 1, of the row's part when rows sorted by this value are cut into equal parts."""
        return self._sum_up("ntile", windows.ntile(parts, descending=descending))

    def qcut(self, parts: int | Sequence[float], *, labels: Sequence[str] | None = None) -> Made:
        """Return the number, from 0, or the label of the quantile range of each value; ties share a range."""
        return self._sum_up("qcut", windows.parted(_places(parts, labels), labels))

    def rolling(
        self, rows: int | None = None, *, within: timedelta | int | None = None, least: int | None = None
    ) -> Rolling[Made]:
        """Return aggregates over the last `rows` rows up to each row, or over those less than `within` before it.

        The aggregate is None where fewer than `least` values are present; `least` defaults to `rows`, or to 1 with
        `within`.
        """
        return Rolling(self, rows, within, least)


class Rolling(Pairs[Made], Totals[Made], RollingTotals[Made]):
    """A rolling window over the rows up to each row, whose methods are the aggregates."""

    __slots__ = ("_frame", "_least", "_of", "_within")

    def __init__(self, of: Totals[Made], rows: int | None, within: timedelta | int | None, least: int | None) -> None:
        if isinstance(rows, str | timedelta):
            hint = "rolling(within=timedelta(days=7)), then over(order_by=…)."
            raise InputError(field="rolling", value=shown(repr(rows)), rule="it must be a number of rows", hint=hint)
        if (rows is None) == (within is None):
            raise InputError(
                field="rolling", value="both or none", rule="it needs a number of rows, or within", hint=""
            )
        self._of, self._within = of, within
        if within is not None:
            self._frame = f"RANGE BETWEEN {sequences.units(within) - 1} PRECEDING AND CURRENT ROW"
        else:
            self._frame = f"ROWS BETWEEN {windows.checked_count(rows, 'rolling') - 1} PRECEDING AND CURRENT ROW"
        self._least = (rows or 1) if least is None else least
        if type(self._least) is not int or not 0 <= self._least <= (rows or 2**31):
            raise InputError(
                field="least",
                value=shown(repr(least)),
                rule="it must be a number of values, at most that of the rows",
                hint="",
            )

    def _sum_up(self, name: str, operation: Operation, *others: Any, where: Any = None) -> Made:
        found = framed(operation, self._frame, 0 if name == "count" else self._least)
        return self._of._sum_up(name, found._replace(rolls=True, within=self._within), *others, where=where)

    if not TYPE_CHECKING:  # checkers are told of each method

        def __getattr__(self, name: str) -> Callable[..., Made]:
            if name.startswith("_") or name not in AGGREGATES:
                raise AttributeError(f"there is no total {name!r}. {hint(name, AGGREGATES)}")
            return partial(self._sum_up, name, AGGREGATES[name])


def order_of(value: Call, given: Sequence[Key]) -> tuple[Key, ...]:
    """Return the sort keys of the window of `value`, from those given to `over`.

    Ranks sort by their own argument and refuse other keys; rolling and ordered functions raise InputError without one.
    """
    operation = value.operation
    if operation.sorts:
        if given:
            hint = "Leave order_by out, or use rank(), ntile() … of aaiclick.data."
            raise InputError(
                field="order_by", value="given", rule="the window is sorted by the column itself", hint=hint
            )
        return (Key(value.args[0], operation.sorts == "down"),)
    if (operation.rolls or operation.ordered) and not given:
        rule = "an order must tell which rows come before and after"
        raise InputError(field="order_by", value="nothing", rule=rule, hint="over(…, order_by='time')")
    if operation.within is not None:
        if len(given) > 1:
            raise InputError(field="order_by", value=str(len(given)), rule="within needs exactly one key", hint="")
        sortable = sequences.sortable(operation.within)
        return tuple(Key(call("order", sortable, key.value), key.descending) for key in given)
    return tuple(given)


def _places(parts: int | Sequence[float], labels: Sequence[str] | None) -> list[float]:
    """Return the quantiles between the parts, ascending, without 0 and 1; raise InputError for other input."""
    inner: list[float] = []
    if isinstance(parts, int):
        fits = type(parts) is int and 1 <= parts <= 1_000
        inner = [number / parts for number in range(1, parts)] if fits else []
    else:
        inner = [each for each in parts if each not in (0, 1)]
        fits = all(type(each) in (int, float) and 0 < each < 1 for each in inner) and inner == sorted(set(inner))
    if not fits:
        raise InputError(
            field="qcut", value=shown(repr(parts)), rule="it must be a number of parts, or rising quantiles", hint=""
        )
    if labels is not None and (len(labels) != len(inner) + 1 or not all(isinstance(each, str) for each in labels)):
        raise InputError(field="labels", value=shown(repr(labels)), rule=f"it must be {len(inner) + 1} texts", hint="")
    return inner
