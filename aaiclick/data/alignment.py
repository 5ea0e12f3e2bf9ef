"""Which rows of several operands belong together.

Columns of one and the same Object or query go row by row. One value goes with every row. Rows of different Objects
belong together only where both have an order (`order=True`): then the first goes with the first. All else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aaiclick.data.expressions import Expression, over_columns, stand_in
from aaiclick.data.planning import has_window
from aaiclick.data.relations import (
    Aggregate,
    Aligned,
    Project,
    Relation,
    Table,
    aligned_name,
    is_ordered,
    own_columns,
)
from aaiclick.errors import NotAligned


class Columns(NamedTuple):
    """Columns that are computed from the rows of a base."""

    base: Relation
    columns: Mapping[str, Expression]


def columns_of(relation: Relation) -> Columns:
    """The columns of a relation, over the rows from which they are computed."""
    if isinstance(relation, Project):
        return Columns(relation.source, relation.columns)
    return Columns(relation, own_columns(relation))


def columns_to_sum(relation: Relation) -> Columns:
    """The columns of a relation, over rows whose totals can be computed in the same query."""
    found = columns_of(relation)
    return Columns(relation, own_columns(relation)) if has_window(found.columns.values()) else found


def aggregates_of(relation: Relation) -> Columns | None:
    """The columns of one row of totals, over the rows that they sum up; None if it is something else."""
    if isinstance(relation, Aggregate) and not relation.keys:
        return Columns(relation.source, relation.columns)
    return None


def side_by_side(operands: Sequence[Columns]) -> tuple[Relation, list[Mapping[str, Expression]]]:
    """A base that has the rows of all operands, and their columns over it."""
    if all(operand.base is operands[0].base for operand in operands):
        return operands[0].base, [operand.columns for operand in operands]
    for operand in operands:
        if not is_ordered(operand.base):
            raise NotAligned(what=_told(operand.base))
    sources: list[Relation] = []
    found = [_placed(operand, sources) for operand in operands]
    return Aligned(tuple(sources)), found


def _placed(operand: Columns, sources: list[Relation]) -> Mapping[str, Expression]:
    """Put an operand beside those that are there; what is side by side already is not nested."""
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
