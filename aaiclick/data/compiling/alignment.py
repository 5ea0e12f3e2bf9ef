"""Which rows of several operands belong together.

Columns of one and the same Object or query go row by row; a query that is written twice is one. One value goes with
every row. Rows of different Objects belong together only where both have an order (`order=True`, or `order_by`): then
the first goes with the first. All else is refused.
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


def side_by_side(
    operands: Sequence[Columns], one_client: bool = True
) -> tuple[Relation, list[Mapping[str, Expression]]]:
    """A base that has the rows of all operands, and their columns over it."""
    if one_client and not _are_together(operands):  # elsewhere, a table of the same name is another
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
    """The operands, of which those have one base whose rows are the same: queries written twice, groups by the same."""
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
    """The same columns, computed from the rows below, where each row comes of one row there."""
    while isinstance(operand.base, Project) and _can_be_lowered(operand.columns, operand.base):
        base = operand.base
        columns = {name: over_columns(value, base.columns) for name, value in operand.columns.items()}
        operand = Columns(base.source, columns)
    return operand


def _can_be_lowered(columns: Mapping[str, Expression], base: Project) -> bool:
    if any(isinstance(each, Raw) for each in walk(columns.values())):  # its names are those of the base
        return False
    return not (has_window(columns.values()) and has_window(base.columns.values()))


def _merged(operands: Sequence[Columns]) -> list[Columns]:
    """Totals of the same groups, in one query."""
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
