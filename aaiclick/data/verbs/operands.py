"""Binds the operands of a frame's methods to its rows: constants, single values, terms and columns of other frames."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aaiclick.data.compiling.alignment import (
    Columns,
    aggregates_of,
    columns_of,
    columns_to_sum,
    joined_up,
    side_by_side,
)
from aaiclick.data.compiling.planning import has_window, is_aggregate
from aaiclick.data.display import glimpse
from aaiclick.data.query.column_terms import Term, col, condition_of
from aaiclick.data.query.expressions import Column, Expression, Key, Raw, Value, over_columns, stand_in, walk
from aaiclick.data.query.operators import Make
from aaiclick.data.query.record_paths import at_path, with_paths
from aaiclick.data.query.relations import (
    Aggregate,
    Filter,
    Nowhere,
    Project,
    Relation,
    Slice,
    Sort,
    column_of,
    free_prefix,
    one,
    own_columns,
)
from aaiclick.data.results.evaluation import Evaluation
from aaiclick.data.sql.quoting import check_column
from aaiclick.data.typing.schema import ORDER, Shape
from aaiclick.errors import InputError, NotAligned
from aaiclick.urls import did_you_mean, shown

_WORD = re.compile(r"[A-Za-z_]\w*")


class Combined(NamedTuple):
    """The relation that a computation gives, and the shape of its value."""

    relation: Relation
    shape: Shape


def combine(me: Evaluation, make: Make, others: Sequence[Any]) -> Combined:
    """Apply `make` to each column of `me` together with the other operands, row by row."""
    frames = [other for other in others if isinstance(other, Evaluation)]
    many = [each for each in frames if not each._is_single()]
    if not me._is_single():
        operands = [columns_of(each._relation) for each in (me, *many)]
        base, found = side_by_side(operands, have_one_client([me, *many]))
        columns = dict(zip(map(id, (me, *many)), found, strict=True))
        return Combined(Project(base, _each(make, found[0], others, columns)), me._shape)
    if many:
        return _led_by(many[0], me, make, others)
    return _singles(me, make, others, frames)


def _each(
    make: Make, mine: Mapping[str, Expression], others: Sequence[Any], columns: Mapping[int, Mapping[str, Expression]]
) -> dict[str, Expression]:
    return {
        name: make(value, *(_beside(other, name, mine, columns) for other in others)) for name, value in mine.items()
    }


def _singles(me: Evaluation, make: Make, others: Sequence[Any], frames: Sequence[Evaluation]) -> Combined:
    """Combine single values. Totals of the same rows are computed by one aggregation."""
    totals = [aggregates_of(each._relation) for each in (me, *frames)]
    first = totals[0]
    if first is not None and all(total is not None and total.base is first.base for total in totals):
        found = [total.columns for total in totals if total is not None]
        columns = dict(zip(map(id, (me, *frames)), found, strict=True))
        return Combined(Aggregate(first.base, {}, _each(make, first.columns, others, columns)), me._shape)
    first = Columns(Nowhere(), {me.columns[0]: single(me)}) if me._shape == "scalar" else columns_of(me._relation)
    return Combined(Project(first.base, _each(make, first.columns, others, {})), me._shape)


def _led_by(leader: Evaluation, me: Evaluation, make: Make, others: Sequence[Any]) -> Combined:
    """Combine a single value `me` with a frame of many rows: the result has the rows of that frame."""
    place = next(number for number, each in enumerate(others) if each is leader)

    def turned(value: Expression, mine: Expression, *rest: Expression) -> Expression:
        return make(mine, *rest[:place], value, *rest[place:])

    return combine(leader, turned, [me, *others[:place], *others[place + 1 :]])


def _beside(
    other: Any, name: str, mine: Mapping[str, Expression], columns: Mapping[int, Mapping[str, Expression]]
) -> Expression:
    """Return the operand that is combined with the column `name`."""
    if isinstance(other, Term):
        names = [each.name for each in walk([other.expression]) if isinstance(each, Column)]
        seen = with_paths(mine, names)
        check_columns(seen if len(seen) > len(mine) else mine, names)
        return over_columns(other.expression, seen)
    if not isinstance(other, Evaluation):
        return Value(other)
    found = columns.get(id(other))
    if found is None:
        return single(other)
    if len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        rule = f"it has no column {name!r}"
        raise InputError(field="operand", value=repr(other), rule=rule, hint="Choose columns on both sides.")
    return found[name]


def single(frame: Evaluation) -> Expression:
    """Return a frame of one value as an expression: a subquery, or the value itself if it is computed from no table."""
    relation = only_value(frame)
    if isinstance(relation, Project) and isinstance(relation.source, Nowhere):
        return next(iter(relation.columns.values()))
    return one(relation)


def only_value(frame: Evaluation) -> Relation:
    """Return the relation of a frame of one value; raise NotAligned if it has another shape."""
    if frame._shape != "scalar":
        raise NotAligned(what=repr(frame))
    return frame._relation


def totalled(me: Evaluation, make: Make, others: Sequence[Any], where: Any) -> Relation:
    """Return one row of totals: `make` of each column of `me`, the other columns, and the condition if there is one."""
    given = [col(each) if isinstance(each, str) else each for each in others]
    given += [] if where is None else [Term(condition_of(where)) if isinstance(where, str) else where]
    frames = [each for each in given if isinstance(each, Evaluation) and not each._is_single()]
    operands = [columns_to_sum(each._relation) for each in (me, *frames)]
    base, found = side_by_side(operands) if frames else (operands[0].base, [operands[0].columns])
    columns = dict(zip(map(id, frames), found[1:], strict=True))
    return Aggregate(base, {}, _each(make, found[0], given, columns))


# ---------------------------------------------------------------- conditions, keys, new columns


class Bound(NamedTuple):
    """A value, and the relation whose rows it is computed from; None means the rows of the frame itself."""

    base: Relation | None
    value: Expression


def bind(frame: Evaluation, given: Any, *, as_sql: bool = False) -> Bound:
    """Bind a column or a condition to its rows. With `as_sql`, a string is an SQL condition."""
    if as_sql:
        _check_condition(given)
    if isinstance(given, str) and as_sql:
        return Bound(None, Raw(given, truth=True))
    if isinstance(given, Evaluation) and not given._is_single():
        found = columns_of(given._relation)
        if len(found.columns) != 1:
            raise InputError(
                field="column", value=repr(given), rule="it must be one column", hint="Choose one: obj['name']."
            )
        return _bound(frame, given, found)
    return Bound(None, _beside(given, "", own_columns(frame._relation) if isinstance(given, Term) else {}, {}))


def _check_condition(given: Any) -> None:
    """Raise InputError for a constant condition: it would be true of all rows or of none."""
    value = given.expression if isinstance(given, Term) else given
    value = value.value if isinstance(value, Value) else value
    is_sql = isinstance(given, str) and given.strip()
    if not (is_sql or isinstance(value, Evaluation | Expression) or type(value).__name__.startswith("bool")):
        hint = 'Write where(col("a") > 1), or SQL such as "a > 1".'
        raise InputError(field="condition", value=glimpse(given), rule="it is the same for every row", hint=hint)


def refuse_list(name: str, value: object) -> None:
    """Raise InputError if the value is a list or an array: nothing assigns its elements to rows."""
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        rule = "a list is not a column: it does not say which row each value belongs to"
        hint = "Join them on a key; lit([…]) is the same list in every row."
        raise InputError(field=f"column {shown(name)}", value=glimpse(value), rule=rule, hint=hint)


def _bound(frame: Evaluation, given: Evaluation, found: Columns) -> Bound:
    (value,) = found.columns.values()
    near = _nearest(frame._relation, found.base, value)
    if near is not found.base or not _is_elsewhere(frame._relation, near) or not have_one_client([frame, given]):
        return Bound(near, value)
    mine, theirs = joined_up([columns_of(frame._relation), found])
    if mine.base is not theirs.base or _is_elsewhere(frame._relation, mine.base):
        return Bound(near, value)
    return Bound(mine.base, next(iter(theirs.columns.values())))


def _is_elsewhere(relation: Relation, base: Relation) -> bool:
    return base is not relation and not (isinstance(relation, Project) and base is relation.source)


def have_one_client(frames: Sequence[Evaluation]) -> bool:
    """Return whether all frames use the same ClickHouse client."""
    return all(each._context._client is frames[0]._context._client for each in frames)


def _nearest(relation: Relation, base: Relation, value: Expression) -> Relation:
    """Return the frame's own rows if they are a selection of the base's rows, else the base.

    A value computed row by row is the same for both; a window is not, so it keeps its base.
    """
    if has_window([value]):
        return base
    for own in (relation, relation.source) if isinstance(relation, Project) else (relation,):
        step = own
        while isinstance(step, Filter | Sort | Slice):
            step = step.source
            if step is base:
                return own
    return base


def check_seen(frame: Evaluation, names: Sequence[str]) -> bool:
    """Return whether some of the names are paths into columns; raise InputError if one is neither column nor path."""
    if all(name in frame.columns for name in names):
        return False
    found = with_paths(own_columns(frame._relation), names)
    if all(name in found for name in names):
        return True
    check_columns(frame.columns, (name for name in names if name not in found))
    return True


def check_columns(columns: Collection[str], names: Iterable[str]) -> None:
    """Raise InputError if one of the names is not a column."""
    for name in names:
        if name not in columns:
            known, hint = shown(", ".join(list(columns)[:20])), did_you_mean(str(name), columns)
            raise InputError(field="column", value=shown(repr(name)), rule=f"the columns are {known}", hint=hint)


def check_count(value: object, field: str) -> int:
    """Return the value if it is a whole number from 0 to 2**63 - 1, else raise InputError for `field`."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise InputError(field=field, value=repr(value), rule="it must be a whole number, 0 or more", hint="")
    return value


def flat(given: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments as one tuple; lists and tuples among them are flattened by one level."""
    return tuple(each for one in given for each in (one if isinstance(one, list | tuple) else (one,)))


def new_name(name: object) -> str:
    """Return the name if a new column may have it, else raise InputError."""
    if name == ORDER:
        raise InputError(field="column", value=ORDER, rule="this name is reserved for the order of rows", hint="")
    return check_column(name)


class Settled(NamedTuple):
    """A relation with the rows and columns of a frame (sometimes extra columns), and values computed over it."""

    relation: Relation
    values: tuple[Expression, ...]


def settle(frame: Evaluation, bound: Sequence[Bound], *, windows: bool = True) -> Settled:
    """Make values computable over the frame's rows; raise NotAligned if one belongs to other rows.

    With windows=False, values with windows become extra columns first: a filter or a window must not contain one.
    """
    relation, values = frame._relation, tuple(each.value for each in bound)
    if any(each.base not in (None, relation) for each in bound):
        if not isinstance(relation, Project) or any(
            each.base not in (None, relation, relation.source) for each in bound
        ):
            raise NotAligned(what=_told_of(bound))
        lower = [each.base is relation.source for each in bound]
        relation, values = _added(relation.source, relation.columns, values, lower)
    if not windows and has_window(values):
        relation, values = _added(relation, own_columns(relation), values, [True] * len(values))
    return Settled(relation, values)


def _added(
    source: Relation, columns: Mapping[str, Expression], values: Sequence[Expression], which: Sequence[bool]
) -> Settled:
    """Add the values that `which` marks as extra columns, and return references to these in their place."""
    prefix = free_prefix((*source.names, *columns))
    more = {f"{prefix}v{number}": value for number, value in enumerate(values) if which[number]}
    named: list[Expression] = [stand_in(name, value) for name, value in more.items()]
    found = tuple(named.pop(0) if chosen else value for value, chosen in zip(values, which, strict=True))
    return Settled(Project(source, {**columns, **more}), found)


def _told_of(bound: Sequence[Bound]) -> str:
    return "the new column" if len(bound) == 1 else "the name is one of the new columns"


def _only(relation: Relation, names: Sequence[str]) -> Relation:
    """Drop the extra columns."""
    return relation if relation.names == tuple(names) else Project(relation, {n: column_of(relation, n) for n in names})


def filtered(frame: Evaluation, conditions: Sequence[Any]) -> Relation:
    """Return the rows of the frame for which all conditions are true."""
    bound = [bind(frame, condition, as_sql=True) for condition in conditions]
    relation = frame._relation
    if isinstance(relation, Project) and all(each.base is relation.source for each in bound):
        values = tuple(each.value for each in bound)
        if not has_window((*relation.columns.values(), *values)):
            return Project(Filter(relation.source, values), relation.columns)
    settled = settle(frame, bound, windows=False)
    return _only(Filter(settled.relation, settled.values), frame.columns)


def extended(frame: Evaluation, given: Mapping[str, Any]) -> Relation:
    """Return the frame's columns together with the given ones; a given column replaces one of the same name."""
    bound = [bind(frame, value) for value in given.values()]
    check_by_row(each.value for each in bound)
    relation = frame._relation
    if isinstance(relation, Project) and all(each.base is relation.source for each in bound):
        new = dict(zip(given, (each.value for each in bound), strict=True))
        return Project(relation.source, {**relation.columns, **new})
    relation, values = settle(frame, bound)
    mine = {name: column_of(relation, name) for name in frame.columns}
    return Project(relation, {**mine, **dict(zip(given, values, strict=True))})


def projected(frame: Evaluation, given: Mapping[str, Any]) -> Relation:
    """Return only the given columns, computed from those of the frame."""
    bound = [bind(frame, value) for value in given.values()]
    check_by_row(each.value for each in bound)
    relation = frame._relation
    if isinstance(relation, Project) and all(each.base is relation.source for each in bound):
        return Project(relation.source, dict(zip(given, (each.value for each in bound), strict=True)))
    relation, values = settle(frame, bound)
    return Project(relation, dict(zip(given, values, strict=True)))


def check_by_row(values: Iterable[Expression]) -> None:
    """Raise InputError if a value is an aggregate: these columns are computed row by row."""
    if any(map(is_aggregate, walk(values))):
        hint = "Use agg() for one row, or .over() for the same value in every row."
        raise InputError(field="column", value="a total", rule="new columns are computed row by row", hint=hint)


class Sorting(NamedTuple):
    """The sort keys, and for each whether it is descending."""

    bound: list[Bound]
    descending: list[bool]

    def keys(self, values: Iterable[Expression]) -> tuple[Key, ...]:
        return tuple(Key(value, down) for value, down in zip(values, self.descending, strict=True))


def sorting(frame: Evaluation, keys: Sequence[Any], descending: bool | Sequence[bool]) -> Sorting:
    """Return the sort keys; without any, the first column."""
    wanted: Sequence[Any] = keys or frame.columns[:1]
    down = [descending] * len(wanted) if isinstance(descending, bool) else list(descending)
    if len(down) != len(wanted):
        raise InputError(
            field="descending", value=str(descending), rule="it must be one value, or one for each key", hint=""
        )
    return Sorting([_key(frame, key) for key in wanted], down)


def _key(frame: Evaluation, key: Any) -> Bound:
    if isinstance(key, str):
        if key in frame.columns:
            return Bound(None, Column(key))
        found = at_path(own_columns(frame._relation), key)
        if found is None and _WORD.fullmatch(key):
            check_columns(frame.columns, [key])
        return Bound(None, found or Raw(key))
    bound = bind(frame, key)
    if isinstance(bound.value, Value):
        rule = "rows cannot be sorted by a constant"
        raise InputError(field="order_by", value=glimpse(key), rule=rule, hint="Give the name of a column.")
    return bound


def sorted_by(frame: Evaluation, by: Sorting) -> Relation:
    """Return the rows of the frame, sorted."""
    relation, values = settle(frame, by.bound)
    return _only(Sort(relation, by.keys(values)), frame.columns)
