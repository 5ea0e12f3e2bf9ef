"""Leaves out the columns of inner queries that nothing around them uses.

ClickHouse does not read them either way; but it resolves each column of each inner query, which takes longer than a
small query runs. Tables keep their columns: `SELECT *` reads them all, so made-up names must differ from all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from aaiclick.data.query.expressions import Column, Expression, Raw, walk
from aaiclick.data.query.relations import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Project,
    Relation,
    Slice,
    Sort,
    column_of,
    expressions_of,
)

Names = Collection[str] | None
"""The names of the columns that are used; None stands for all of them."""


def pruned(relation: Relation, names: Names = None) -> Relation:
    """Return the same rows with the columns `names`, perhaps with others beside them, in the same order."""
    match relation:
        case Filter():
            return _filtered(relation, names)
        case Project(source=source, columns=columns):
            kept = {name: value for name, value in columns.items() if names is None or name in names}
            kept = kept or dict(list(columns.items())[:1])
            return Project(pruned(source, _used(kept.values(), ())), kept)
        case Aggregate(source=source):
            return replace(relation, source=pruned(source, _used(expressions_of(relation), ())))
        case Sort(source=source):
            return replace(relation, source=pruned(source, _used(expressions_of(relation), names)))
        case Slice(source=source):
            return replace(relation, source=pruned(source, names))
        case Distinct(source=source, by=by):
            return replace(relation, source=pruned(source, _with(names, by) if by else None))
        case Explode(source=source, columns=lists):
            return replace(relation, source=pruned(source, _with(names, lists)))
        case Join():
            return _joined(relation, names)
    return relation


def _filtered(relation: Filter, names: Names) -> Relation:
    """Prune below a chain of filters, of any length."""
    chain: list[Filter] = []
    source: Relation = relation
    while isinstance(source, Filter):
        chain.append(source)
        names, source = _used(source.conditions, names), source.source
    source = pruned(source, names)
    for each in reversed(chain):
        source = Filter(source, each.conditions)
    return source


def _joined(relation: Join, names: Names) -> Relation:
    mine, theirs = {left for left, _ in relation.on}, {right for _, right in relation.on}
    renamed = {old: new for old, new in relation.renamed.items() if names is None or new in names}
    left = _narrowed(relation.left, _with(names, mine))
    return replace(relation, left=left, right=_narrowed(relation.right, {*theirs, *renamed}), renamed=renamed)


def _narrowed(side: Relation, names: Names) -> Relation:
    """Return one side of a join with the columns `names` alone: a join gives all columns of its left side."""
    found = pruned(side, names)
    kept = [name for name in found.names if names is None or name in names] or [*found.names[:1]]
    return found if len(kept) == len(found.names) else Project(found, {name: column_of(found, name) for name in kept})


def _with(names: Names, others: Iterable[str]) -> Names:
    return None if names is None else {*names, *others}


def _used(expressions: Iterable[Expression], names: Names) -> Names:
    """Return the columns that the expressions use, and `names`; all if one is raw SQL, which may use any."""
    inside = list(walk(expressions))
    if names is None or any(isinstance(each, Raw) for each in inside):
        return None
    return {*names, *(each.name for each in inside if isinstance(each, Column))}
