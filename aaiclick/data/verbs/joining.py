"""Joins: `join`, `cross_join` and `join_asof`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.clocks import check_alike
from aaiclick.data.operations import FUNCTIONS, OPERATORS, Operation
from aaiclick.data.query.expressions import Column, Expression, Value, call
from aaiclick.data.query.relations import (
    Filter,
    Join,
    JoinKind,
    NearestKind,
    Project,
    Relation,
    column_of,
    free_prefix,
    own_columns,
)
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.sameness.coercion import matched
from aaiclick.data.sql.zones import SECONDS
from aaiclick.data.verbs.operands import check_columns
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.frames import Query

On = str | Sequence[str] | Mapping[str, str]
"""The columns compared for equality: a name, several names, or a mapping from the left name to the right name."""

JOIN_KINDS = ("inner", "left", "right", "full", "cross", "semi", "anti")
_SECONDS_APART = Operation(f"abs({SECONDS.format('{0}')} - {SECONDS.format('{1}')})", 2, 2)
_APART = Operation("abs({0} - {1})", 2, 2)
_IS_DAY = "match(toTypeName({0}), '^(Nullable[(])?Date(32)?[)]?$')"
_NO_DAY = f"throwIf(NOT {_IS_DAY}, 'a timedelta as tolerance is for days and times')"
_DAYS_APART = Operation(f"if({_NO_DAY} = 0, abs(dateDiff('day', {{0}}, {{1}})) * 86400, 0)", 2, 2)


class Joining(Evaluation):
    """The join methods of a frame."""

    __slots__ = ()

    def join(
        self,
        other: Evaluation,
        on: On | None = None,
        how: JoinKind = "inner",
        suffix: str = "_right",
        left_suffix: str = "",
    ) -> Query:
        """Join this frame (left) with another (right) where the columns `on` are equal.

        A mapping in `on` pairs left names with right names. Other columns that both sides have get the suffix of their
        side.
        """
        pairs = _pairs(on)
        if how not in JOIN_KINDS:
            raise InputError(field="how", value=str(how), rule=f"it must be one of {', '.join(JOIN_KINDS)}", hint="")
        if bool(pairs) == (how == "cross"):
            rule = "a cross join takes no columns, and every other join needs some"
            raise InputError(field="on", value=str(on), rule=rule, hint="")
        _check_pairs(self, other, pairs)
        keys = {theirs for mine, theirs in pairs}
        kept = () if how in ("semi", "anti") else [name for name in other.columns if name not in keys]
        sides = _sides(self._relation, kept, {mine for mine, _ in pairs}, (left_suffix, suffix))
        joined = Join(sides.left, other._relation, pairs, how, sides.renamed)
        _check_names(joined.names, suffix)
        return self._query(joined, "table")

    def cross_join(self, other: Evaluation, suffix: str = "_right", left_suffix: str = "") -> Query:
        """Return every row of this frame with every row of the other."""
        return self.join(other, how="cross", suffix=suffix, left_suffix=left_suffix)

    def join_asof(
        self,
        other: Evaluation,
        on: str | Mapping[str, str],
        by: On | None = None,
        direction: NearestKind = "backward",
        tolerance: timedelta | float | Decimal | None = None,
        suffix: str = "_right",
        left_suffix: str = "",
    ) -> Query:
        """Join each row with the nearest row of the other frame at or before it in `on` (forward: at or after it).

        The columns `by` must be equal. If no row is near enough for the tolerance (a timedelta, or a number), the other
        frame's columns are None. If `on` is a mapping, the other frame's `on` column is in the result too.
        """
        if direction not in ("backward", "forward"):
            raise InputError(
                field="direction", value=shown(repr(direction)), rule="it must be backward or forward", hint=""
            )
        times, pairs = _pairs(on), _pairs(by)
        if len(times) != 1:
            raise InputError(
                field="on", value=shown(str(on)), rule="it must be one column", hint="Give the other columns as by=…."
            )
        _check_pairs(self, other, (*pairs, *times))
        (mine, theirs), keys = times[0], {name for _, name in pairs}
        gone = keys if isinstance(on, Mapping) else {*keys, theirs}
        kept = [name for name in other.columns if name not in gone]
        sides = _sides(self._relation, kept, {*(name for name, _ in pairs), mine}, (left_suffix, suffix))
        _check_names((*sides.left.names, *sides.renamed.values()), suffix)
        return self._query(_nearest(sides, other._relation, (*pairs, *times), direction, _checked(tolerance)), "table")


class _Sides(NamedTuple):
    """The left side, its columns renamed where needed, and the new names of the right side's columns."""

    left: Relation
    renamed: dict[str, str]


def _sides(left: Relation, kept: Iterable[str], keys: Iterable[str], suffixes: tuple[str, str]) -> _Sides:
    mine, theirs = suffixes
    for suffix in suffixes:
        if not isinstance(suffix, str):
            raise InputError(field="suffix", value=shown(repr(suffix)), rule="it must be a text", hint="")
    twice = {name for name in kept if name in left.names}
    called = {name: f"{name}{mine}" if name in twice - set(keys) else name for name in left.names}
    renamed = {name: f"{name}{theirs}" if name in twice else name for name in kept}
    if all(old == new for old, new in called.items()):
        return _Sides(left, renamed)
    if len(set(called.values())) < len(called):
        raise _same_name(mine)
    return _Sides(Project(left, {new: column_of(left, old) for old, new in called.items()}), renamed)


def _pairs(on: On | None) -> tuple[tuple[str, str], ...]:
    if on is None:
        return ()
    if isinstance(on, Mapping):
        return tuple(on.items())
    if not isinstance(on, str | list | tuple):
        rule = "it must be a name, a list of names, or a mapping where the names differ"
        raise InputError(field="on", value=shown(repr(on)), rule=rule, hint="")
    return tuple((name, name) for name in ([on] if isinstance(on, str) else on))


def _check_pairs(left: Evaluation, right: Any, pairs: Sequence[tuple[str, str]]) -> None:
    if not isinstance(right, Evaluation):
        raise InputError(
            field="join", value=shown(repr(right)), rule="it must be an Object, a View or a query", hint=""
        )
    check_columns(left.columns, (mine for mine, _ in pairs))
    check_columns(right.columns, (theirs for _, theirs in pairs))
    for mine, theirs in pairs:
        clocks = (column_of(left._relation, mine).clock, column_of(right._relation, theirs).clock)
        check_alike(f"on {shown(mine)}", *clocks)
        matched(column_of(left._relation, mine).kind, column_of(right._relation, theirs).kind, "on", mine)


def _check_names(names: Sequence[str], suffix: str) -> None:
    if len(set(names)) < len(names):
        raise _same_name(suffix)


def _same_name(suffix: str) -> InputError:
    rule = "two columns would have the same name"
    return InputError(field="suffix", value=suffix, rule=rule, hint="Choose another suffix.")


# ---------------------------------------------------------------- join_asof


def _nearest(
    sides: _Sides, right: Relation, on: tuple[tuple[str, str], ...], direction: NearestKind, tolerance: Tolerance | None
) -> Relation:
    """Return the ASOF join, with the right columns set to None where the nearest row is beyond the tolerance."""
    left, renamed = sides
    prefix = free_prefix((*left.names, *right.names, *renamed.values()))
    same, ours, found, (mine, theirs) = f"{prefix}k", f"{prefix}o", f"{prefix}t", on[-1]
    time, its_time = column_of(left, mine), column_of(right, theirs)
    is_time = call("eq", OPERATORS["eq"], time, time)  # neither None nor NaN: ClickHouse would match those
    wanted = call("choose", FUNCTIONS["choose"], is_time, time, Value(None))
    left = Project(left, {**own_columns(left), same: Value(0), ours: wanted})  # ASOF JOIN needs an equality
    there = Filter(right, (call("eq", OPERATORS["eq"], its_time, its_time),))
    source = Project(there, {**own_columns(there), same: Value(0), found: its_time})
    joined = Join(left, source, ((same, same), *on[:-1], (ours, found)), direction, {**renamed, found: found})
    columns: dict[str, Expression] = {name: column_of(joined, name) for name in sides.left.names}
    near = None if tolerance is None else _is_near(column_of(joined, mine), column_of(joined, found), tolerance)
    for name in renamed.values():
        column = column_of(joined, name)
        columns[name] = column if near is None else call("choose", FUNCTIONS["choose"], near, column, Value(None))
    return Project(joined, columns)


def _is_near(mine: Column, theirs: Column, tolerance: Tolerance) -> Expression:
    if bool(mine.clock or theirs.clock) and not tolerance.seconds:
        rule = "it must be a timedelta between times"
        raise InputError(field="tolerance", value=str(tolerance.most), rule=rule, hint="Give timedelta(seconds=…).")
    seconds = _SECONDS_APART if mine.clock else _DAYS_APART
    apart = call("apart", seconds if tolerance.seconds else _APART, mine, theirs)
    return call("le", OPERATORS["le"], apart, Value(tolerance.most))


class Tolerance(NamedTuple):
    """The greatest allowed distance; `seconds` if it was given as a timedelta."""

    most: Decimal | int | float
    seconds: bool


def _checked(tolerance: object) -> Tolerance | None:
    if tolerance is None:
        return None
    if isinstance(tolerance, timedelta) and tolerance >= timedelta():
        micros = tolerance // timedelta(microseconds=1)
        return Tolerance(Decimal(micros).scaleb(-6), seconds=True)
    if isinstance(tolerance, int | float | Decimal) and not isinstance(tolerance, bool) and tolerance >= 0:
        return Tolerance(tolerance, seconds=False)
    rule = "it must be a timedelta or a number, 0 or more"
    raise InputError(field="tolerance", value=shown(repr(tolerance)), rule=rule, hint="")
