"""Aligns the rows of several operands, so that they can be computed with in one query.

Columns of the same Object or query are combined row by row; a query that is written twice counts as the same. A single
value is combined with every row. Rows of different Objects are combined only if all of them have an order
(`order=True`, or `order_by`): the first with the first, and so on. Anything else raises NotAligned.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from aaiclick.data.compiling.planning import has_window
from aaiclick.data.compiling.row_positions import has_places
from aaiclick.data.compiling.same_queries import Steps
from aaiclick.data.query.expressions import Expression, Raw, over_columns, stand_in, walk
from aaiclick.data.query.relations import (
    Aggregate,
    Aligned,
    Project,
    Relation,
    Table,
    aligned_name,
    free_prefix,
    own_columns,
)
from aaiclick.errors import NotAligned


class Columns(NamedTuple):
    """Columns, as expressions over the rows of a base relation."""

    base: Relation
    columns: Mapping[str, Expression]


def columns_of(relation: Relation) -> Columns:
    """Return the columns of a relation as expressions over the rows they are computed from."""
    if isinstance(relation, Project):
        return Columns(relation.source, relation.columns)
    return Columns(relation, own_columns(relation))


def columns_to_sum(relation: Relation) -> Columns:
    """Return the columns of a relation as expressions that aggregates can contain: none of them is a window."""
    found = columns_of(relation)
    return Columns(relation, own_columns(relation)) if has_window(found.columns.values()) else found


def aggregates_of(relation: Relation) -> Columns | None:
    """Return the aggregates of a relation that is one row of totals, over the rows they sum up; else None."""
    if isinstance(relation, Aggregate) and not relation.keys:
        return Columns(relation.source, relation.columns)
    return None


def side_by_side(
    operands: Sequence[Columns], one_client: bool = True
) -> tuple[Relation, list[Mapping[str, Expression]]]:
    """Return a base with the rows of all operands, and the columns of each operand over it.

    Raise NotAligned if their rows do not belong together. `one_client` is False if the operands are in different
    ClickHouse servers.
    """
    if one_client and not _are_together(operands):  # on another server, an equal name is another table
        operands = joined_up(operands)
    if _are_together(operands):
        return operands[0].base, [operand.columns for operand in operands]
    for operand in operands:
        if not has_places(operand.base):
            raise NotAligned(what=_told(operand.base))
    sources: list[Relation] = []
    found = [_placed(operand, sources) for operand in operands]
    return Aligned(tuple(sources)), found


def _are_together(operands: Sequence[Columns]) -> bool:
    return all(operand.base is operands[0].base for operand in operands)


def joined_up(operands: Sequence[Columns]) -> list[Columns]:
    """Give operands with the same rows one common base: queries written twice, and totals of the same groups."""
    found, steps = list(map(_lowered, operands)), Steps()
    first: dict[int, Relation] = {}
    for place, operand in enumerate(found):
        found[place] = operand._replace(base=first.setdefault(steps.number(operand.base), operand.base))
    groups: dict[Hashable, list[int]] = {}
    for place, operand in enumerate(found):
        if isinstance(operand.base, Aggregate) and operand.base.keys:
            groups.setdefault(steps.rows_of(operand.base), []).append(place)
    for places in groups.values():
        if not _are_together([found[place] for place in places]):
            merged = _merged([found[place] for place in places])
            for place, operand in zip(places, merged, strict=True):
                found[place] = operand
    return found


def _lowered(operand: Columns) -> Columns:
    """Rewrite columns over a Project as columns over its source, which has the same rows; repeat while possible."""
    while isinstance(operand.base, Project) and _can_be_lowered(operand.columns, operand.base):
        base = operand.base
        columns = {name: over_columns(value, base.columns) for name, value in operand.columns.items()}
        operand = Columns(base.source, columns)
    return operand


def _can_be_lowered(columns: Mapping[str, Expression], base: Project) -> bool:
    if any(isinstance(each, Raw) for each in walk(columns.values())):  # raw SQL uses the names of the base
        return False
    return not (has_window(columns.values()) and has_window(base.columns.values()))


def _merged(operands: Sequence[Columns]) -> list[Columns]:
    """Merge totals of the same groups into one Aggregate."""
    first = operands[0].base
    assert isinstance(first, Aggregate)
    prefix = free_prefix(name for operand in operands for name in operand.base.names)
    totals: dict[str, Expression] = {}
    called: list[dict[str, Expression]] = []
    for number, operand in enumerate(operands):
        base = operand.base
        assert isinstance(base, Aggregate)
        new = {name: f"{prefix}{number}.{name}" for name in base.columns}
        totals |= {new[name]: value for name, value in base.columns.items()}
        known = own_columns(base)
        called.append({name: stand_in(new.get(name, name), known[name]) for name in base.names})
    merged = replace(first, columns=totals)
    return [
        Columns(merged, {name: over_columns(value, names) for name, value in operand.columns.items()})
        for operand, names in zip(operands, called, strict=True)
    ]


def _placed(operand: Columns, sources: list[Relation]) -> Mapping[str, Expression]:
    """Append an operand to the aligned sources, without nesting Aligned relations; return its columns over them."""
    place, base = len(sources), operand.base
    if not isinstance(base, Aligned):
        sources.append(Project(base, operand.columns))
        return {name: stand_in(aligned_name(place, name), value) for name, value in operand.columns.items()}
    sources += base.sources
    moved: dict[str, Expression] = {
        aligned_name(number, name): stand_in(aligned_name(place + number, name), column)
        for number, source in enumerate(base.sources)
        for name, column in own_columns(source).items()
    }
    return {name: over_columns(value, moved) for name, value in operand.columns.items()}


def _told(relation: Relation) -> str:
    return f"the table {relation.name}" if isinstance(relation, Table) else "a query"
