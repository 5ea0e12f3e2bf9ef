"""The order of rows in a union: `concat` gives the rows of each source in turn, each source in its own order.

ClickHouse reads the sources of a UNION ALL concurrently. Where rows are read or stored, each row therefore gets the
number of its source and its position there, and is sorted by these; aggregates and joins of a union need no order.
"""

from __future__ import annotations

from aaiclick.data.query.expressions import Column, Expression, Key, Raw, Value
from aaiclick.data.query.relations import (
    Aggregate,
    Filter,
    Project,
    Relation,
    Sort,
    Union,
    free_prefix,
    is_ordered,
    own_columns,
    sources_of,
    with_order,
)
from aaiclick.data.typing.schema import ORDER

_ROW = Raw("rowNumberInAllBlocks()")


def in_order(relation: Relation) -> Relation:
    """Return the relation sorted by the order of its table, or of its union; unchanged if it has no order."""
    if is_ordered(relation):
        return _only(Sort(with_order(relation), (Key(Column(ORDER)),)), relation)
    if is_below(relation):
        names = _names(relation)
        return _only(Sort(_placed(relation, names, 0), tuple(Key(Column(name)) for name in names)), relation)
    return relation


def is_as_inserted(relation: Relation) -> bool:
    """Return whether the row order is the insertion order of a table, possibly of one in a union.

    Such a query must be read by a single thread: with several, ClickHouse returns blocks in any order.
    """
    step = relation
    while not isinstance(step, Aggregate | Sort | Union):
        below = sources_of(step)
        if len(below) != 1:
            return not below
        step = below[0]
    return isinstance(step, Union) and any(map(is_as_inserted, step.sources))


def is_below(relation: Relation) -> bool:
    """Return whether the relation is a union, possibly filtered and projected."""
    while isinstance(relation, Filter | Project):
        relation = relation.source
    return isinstance(relation, Union)


def _only(rows: Relation, relation: Relation) -> Project:
    """Drop the columns of `rows` that were added for sorting: keep those of `relation`."""
    return Project(rows, own_columns(relation))


def _names(relation: Relation) -> tuple[str, str]:
    """Return names for the source's number and the row's position that no column below the union has."""
    taken: list[str] = []
    stack = [relation]
    while stack:
        step = stack.pop()
        taken += step.names
        if isinstance(step, Filter | Project):
            stack.append(step.source)
        elif isinstance(step, Union):
            stack += step.sources
    prefix = free_prefix(taken)
    return f"{prefix}source", f"{prefix}row"


def _placed(relation: Relation, names: tuple[str, str], start: int) -> Relation:
    """Add the two position columns `names` to the relation; its sources are numbered from `start`."""
    match relation:
        case Filter(source=source, conditions=conditions) if is_below(source):
            return Filter(_placed(source, names, start), conditions)
        case Project(source=source, columns=columns) if is_below(source):
            return Project(_placed(source, names, start), {**columns, **{name: Column(name) for name in names}})
        case Union(sources=sources):
            found = []
            for source in sources:
                chosen = Project(source, {name: own_columns(source)[name] for name in relation.names})
                found.append(_placed(chosen, names, start))
                start += _count(source)
            return Union(tuple(found))
    row: Expression = _ROW
    if is_ordered(relation):
        relation, row = with_order(relation), Column(ORDER)
    own = {name: value for name, value in own_columns(relation).items() if name != ORDER}
    return Project(relation, {**own, names[0]: Value(start), names[1]: row})


def _count(relation: Relation) -> int:
    """Return the number of sources of a relation, nested unions counted by their own sources."""
    while isinstance(relation, Filter | Project):
        relation = relation.source
    return sum(map(_count, relation.sources)) if isinstance(relation, Union) else 1
