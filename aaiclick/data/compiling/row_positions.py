"""Adds the position of each row, as a column, to a query that has an order: the table's own, or one of `order_by`.

Rows with equal sort keys have positions only if they are equal in all the columns that are used; otherwise the query
fails when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aaiclick.data.operations import WINDOWS, Operation
from aaiclick.data.query.expressions import Column, Expression, Key, Raw, call, over, walk
from aaiclick.data.query.relations import (
    Aligned,
    Filter,
    Project,
    Relation,
    Slice,
    Sort,
    is_ordered,
    own_columns,
    with_order,
)
from aaiclick.data.sql import quoting
from aaiclick.data.typing.schema import ORDER

_TIES = quoting.text("rows have equal sort keys, so their order is not defined: sort by more columns")
_PLACE = Operation(f"toUInt64({{0}} + throwIf({{1}} != {{2}}, {_TIES}))", 3, 3)


def has_places(relation: Relation) -> bool:
    """Return whether the rows have an order, so that each has a position."""
    while isinstance(relation, Filter | Project | Slice):
        if is_ordered(relation):
            return True
        relation = relation.source
    return isinstance(relation, Sort) or is_ordered(relation)


def with_places(relation: Relation, used: Sequence[str] | None = None) -> Relation:
    """Return the relation with the position of each row as the column ORDER.

    `used` names the columns that the caller reads (None: all); rows may tie in the others.
    """
    if is_ordered(relation):
        return relation if isinstance(relation, Aligned) else with_order(relation)
    used = relation.names if used is None else used
    match relation:
        case Filter(source=source, conditions=conditions):
            seen = _used_by([*conditions, *(Column(name) for name in used)], source)
            return Filter(with_places(source, seen), conditions)
        case Project(source=source, columns=columns):
            chosen = {name: columns[name] for name in used}
            return Project(
                with_places(source, _used_by(list(chosen.values()), source)), {**columns, ORDER: Column(ORDER)}
            )
        case Slice(source=source):
            placed = with_places(source, used)
            if ORDER not in placed.names:
                placed = Project(placed, {**own_columns(source), ORDER: Column(ORDER)})
            return replace(relation, source=Sort(placed, (Key(Column(ORDER)),)))
        case Sort(source=source, keys=keys):
            return _numbered(source, keys, used)
    return relation


def _used_by(expressions: Sequence[Expression], source: Relation) -> Sequence[str]:
    found = list(walk(expressions))
    if any(isinstance(each, Raw) for each in found):
        return source.names
    names = {each.name for each in found if isinstance(each, Column)}
    return [name for name in source.names if name in names]


def _numbered(source: Relation, keys: tuple[Key, ...], used: Sequence[str]) -> Relation:
    columns = own_columns(source)
    finer = (*keys, *(Key(columns[name]) for name in used))
    number = over(call("row_number", WINDOWS["row_number"]), (), finer)
    ranks = [over(call("rank", WINDOWS["rank"]), (), each) for each in (keys, finer)]
    return Project(source, {**columns, ORDER: call("place", _PLACE, number, *ranks)})
