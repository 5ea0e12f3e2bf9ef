"""Methods that choose columns and rows of a frame: `select`, `head`, `top`, `deduplicate`, `sample` and others."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from aaiclick.data.operations import FUNCTIONS, OPERATORS, WINDOWS, Operation
from aaiclick.data.query.column_terms import Term, col
from aaiclick.data.query.expressions import Column, Expression, Key, Value, call, over
from aaiclick.data.query.operators import Make
from aaiclick.data.query.relations import Filter, Project, Relation, Slice, Sort, column_of, free_prefix, own_columns
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.verbs.operands import (
    bind,
    check_columns,
    check_count,
    check_seen,
    extended,
    filtered,
    flat,
    new_name,
    projected,
    settle,
    sorting,
)
from aaiclick.data.verbs.or_where import either
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.frames import Frame, Query

Keep = Literal["first", "last", "none"]

_ALL_ROWS = Operation("count()", 0, 0, many=True)
_MIXED = Operation("cityHash64([{0}]{args})", 1, 20_000, apart=True)
"""A hash used as a pseudo-random number. Each value stands in a list, so that None is hashed as a value too."""

_SHARE = Operation("toUInt64(floor({0} * {1}))", 2, 2)


class Choosing(Evaluation):
    """The methods of a frame that choose columns and rows."""

    __slots__ = ()

    if TYPE_CHECKING:  # methods of the frame that are used here

        def __getitem__(self, chosen: str | Sequence[str]) -> Frame: ...
        def order_by(self, *keys: Any, descending: bool | Sequence[bool] = False) -> Frame: ...
        def limit(self, count: int, offset: int = 0) -> Frame: ...
        def _combine(self, make: Make, *others: Any) -> Query: ...

    # ------------------------------------------------------------ columns

    def select(self, *chosen: Any, **named: Any) -> Frame:
        """Return these columns: names, terms, and by keyword values computed per row: select("a", b=col("c") * 2)."""
        wanted = {_name_of(each): each for each in flat(chosen)}
        if len(wanted) + len(named) > len(wanted | named) or len(wanted) < len(flat(chosen)) or not wanted | named:
            rule = "name at least one column, and each only once"
            raise InputError(field="select", value=shown(str([*wanted, *named])), rule=rule, hint="")
        check_seen(self, [each for each in wanted.values() if isinstance(each, str)])
        if not named and all(isinstance(each, str) for each in wanted.values()):
            return self[list(wanted)]
        terms = {name: col(each) if isinstance(each, str) else each for name, each in wanted.items()}
        terms |= {new_name(name): value for name, value in named.items()}
        return self._query(projected(self, terms), "record" if self._is_single() else "table")

    def drop(self, *names: str | Sequence[str]) -> Frame:
        """Return all columns except these."""
        gone = flat(names)
        check_columns(self.columns, gone)
        left = [name for name in self.columns if name not in gone]
        if not left:
            raise InputError(field="drop", value=shown(str(list(gone))), rule="no column would be left", hint="")
        return self[left]

    def fill_null(self, value: Any, /, *columns: str) -> Query:
        """Replace None by a value, in these columns or in all; a mapping gives a value for each column."""
        return self._filled("fill_null", value, columns)

    def fill_nan(self, value: Any, /, *columns: str) -> Query:
        """Replace NaN by a value (or None), in these columns or in all; a mapping gives a value for each column."""
        return self._filled("fill_nan", value, columns)

    def _filled(self, name: str, value: Any, columns: Sequence[str]) -> Query:
        make = partial(call, name, FUNCTIONS[name])
        if not columns and not isinstance(value, Mapping):
            return self._combine(make, value)
        given = value if isinstance(value, Mapping) else dict.fromkeys(columns, value)
        check_columns(self.columns, [*columns, *given])
        return self._query(extended(self, {key: getattr(col(key), name)(given[key]) for key in given}))

    # ------------------------------------------------------------ rows

    def head(self, count: int = 5) -> Frame:
        """Return the first rows, in the frame's order if it has one."""
        return self.limit(count)

    def tail(self, count: int = 5) -> Query:
        """Return the last rows without reversing them, in the frame's order if it has one."""
        last = check_count(count, "tail")
        return self._query(Slice(self._relation, -last), "table" if self._shape == "record" else None)

    def top(self, count: int, by: Any, *, within: Any = (), descending: bool = True) -> Frame:
        """Return the `count` rows with the greatest `by` (the least if not descending), in each group of `within`."""
        if not flat((within,)):
            return self.order_by(*flat((by,)), descending=descending).limit(count)
        most = check_count(count, "top")
        return self._query(first_of_each(self, flat((within,)), flat((by,)), descending, most))

    def deduplicate(
        self, *by: str, order_by: Any = (), descending: bool | Sequence[bool] = False, keep: Keep = "first"
    ) -> Query:
        """Return one row for each distinct value of the columns `by`; of all columns if none is named.

        `keep` chooses the first or the last row in `order_by`; "none" returns only the rows whose value occurs once.
        """
        keys, order = by or self.columns, flat((order_by,))
        check_columns(self.columns, keys)
        if keep not in ("first", "last", "none"):
            raise InputError(field="keep", value=shown(repr(keep)), rule="it must be first, last or none", hint="")
        if by and keep != "none" and not order:
            hint = "Give order_by, or use unique(), which keeps any of them."
            raise InputError(field="order_by", value="nothing", rule="first and last need an order", hint=hint)
        return self._query(_kept(self, keys, order, descending, keep))

    def drop_nulls(self, *names: str) -> Query:
        """Return the rows that have no None in these columns, or in any column. NaN is a number: its rows stay."""
        check_columns(self.columns, names)
        wanted = names or self.columns
        return self._query(filtered(self, [col(name).not_null() for name in wanted]))

    def sample(self, count: int | None = None, *, fraction: float | None = None, seed: int | None = None) -> Query:
        """Return `count` random rows, or a `fraction` of all rows (rounded down): each row at most once, in no order.

        The same seed draws the same rows of the same data. Without a seed, one is drawn for this query: another call
        gives other rows, but running the same query again gives the same ones.
        """
        if (count is None) == (fraction is None):
            raise InputError(
                field="sample", value="both or none", rule="it needs either a count or a fraction", hint=""
            )
        drawn = random.getrandbits(63) if seed is None else check_count(seed, "seed")
        if count is not None:
            return self._query(_sampled(self, drawn, check_count(count, "sample")))
        if type(fraction) not in (int, float) or not 0 <= (fraction or 0) <= 1:
            raise InputError(field="fraction", value=shown(repr(fraction)), rule="it must be from 0 to 1", hint="")
        return self._query(_sampled(self, drawn, float(fraction or 0)))

    def or_where(self, *conditions: Any) -> Frame:
        """Add the rows for which all these conditions are true to those of the `where` right before this call."""
        return self._query(either(self, conditions))


def _name_of(chosen: Any) -> str:
    """Return the name of a column that was given without a keyword; raise InputError if the value has no name."""
    if isinstance(chosen, str):
        return chosen
    if isinstance(chosen, Term) and isinstance(chosen.expression, Column):
        return chosen.expression.name
    if isinstance(chosen, Evaluation) and len(chosen.columns) == 1:
        return chosen.columns[0]
    rule = "a computed column needs a name"
    raise InputError(field="select", value=shown(repr(chosen)), rule=rule, hint="Write select(name=…).")


# ---------------------------------------------------------------- rows chosen by row number


def first_of_each(
    frame: Evaluation, within: Sequence[Any], by: Sequence[Any], descending: bool | Sequence[bool], count: int
) -> Relation:
    """Return the first `count` rows of each group, in the order given by `by`."""
    groups = [bind(frame, col(key) if isinstance(key, str) else key) for key in within]
    check_columns(frame.columns, (key for key in within if isinstance(key, str)))
    order = sorting(frame, by, descending)
    relation, values = settle(frame, [*groups, *order.bound], windows=False)
    partition, keys = values[: len(groups)], order.keys(values[len(groups) :])
    place = over(call("row_number", WINDOWS["row_number"]), tuple(partition), keys)
    return _where_placed(frame, relation, {"p": place}, lambda p: [compared("le", p["p"], Value(count))])


def _kept(
    frame: Evaluation, by: Sequence[str], order_by: Sequence[Any], descending: bool | Sequence[bool], keep: Keep
) -> Relation:
    order = sorting(frame, order_by or by, descending if order_by else False)
    relation, values = settle(frame, order.bound, windows=False)
    partition = tuple(column_of(relation, name) for name in by)
    place = over(call("row_number", WINDOWS["row_number"]), partition, order.keys(values))
    size = over(call("count", _ALL_ROWS), partition, ())
    if keep == "none":
        return _where_placed(frame, relation, {"n": size}, lambda p: [compared("eq", p["n"], Value(1))])
    if keep == "first":
        return _where_placed(frame, relation, {"p": place}, lambda p: [compared("eq", p["p"], Value(1))])
    return _where_placed(frame, relation, {"p": place, "n": size}, lambda p: [compared("eq", p["p"], p["n"])])


def _sampled(frame: Evaluation, seed: int, wanted: int | float) -> Relation:
    """Sort rows by a hash of their values and the seed, and keep the first. Equal rows are numbered, to differ too."""
    relation = frame._relation
    prefix = free_prefix(relation.names)
    mixed = _mixed([column_of(relation, name) for name in relation.names])
    named = Project(relation, {**own_columns(relation), f"{prefix}h": mixed})
    same = over(call("row_number", WINDOWS["row_number"]), (Column(f"{prefix}h"),), ())
    counted = Project(named, {**own_columns(named), f"{prefix}s": same})
    chance = _mixed([Column(f"{prefix}h"), Column(f"{prefix}s"), Value(seed)])
    if isinstance(wanted, int):
        return _only(Slice(Sort(counted, (Key(chance),)), wanted), frame.columns)
    place = over(call("row_number", WINDOWS["row_number"]), (), (Key(chance),))
    size = over(call("count", _ALL_ROWS), (), ())

    def is_drawn(placed: Mapping[str, Expression]) -> list[Expression]:
        return [compared("le", placed["p"], call("share", _SHARE, placed["n"], Value(wanted)))]

    return _where_placed(frame, counted, {"p": place, "n": size}, is_drawn)


def _mixed(values: Sequence[Expression]) -> Expression:
    listed = "".join(f", [{{{number}}}]" for number in range(1, len(values)))
    operation = _MIXED._replace(sql=f"cityHash64([{{0}}]{listed})", most=max(len(values), 1))
    return call("mixed", operation, *values)


def compared(sign: str, left: Expression, right: Expression) -> Expression:
    return call(sign, OPERATORS[sign], left, right)


def _where_placed(frame: Evaluation, relation: Relation, places: Mapping[str, Expression], conditions: Any) -> Relation:
    """Filter by window values (`places`: row numbers, group sizes); the result has the columns of the frame alone."""
    prefix = free_prefix(relation.names)
    named = {key: Column(f"{prefix}{key}") for key in places}
    added = {f"{prefix}{key}": value for key, value in places.items()}
    placed = Project(relation, {**own_columns(relation), **added})
    return _only(Filter(placed, tuple(conditions(named))), frame.columns)


def _only(relation: Relation, names: Sequence[str]) -> Relation:
    return Project(relation, {name: column_of(relation, name) for name in names})
