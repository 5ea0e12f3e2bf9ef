"""Aliases for the columns of one SELECT, so that no new column hides an old one that an expression still refers to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from aaiclick.data.query.expressions import Column, Expression, Raw, walk
from aaiclick.data.query.relations import free_prefix


def called_meanwhile(
    columns: Mapping[str, Expression], beside: Sequence[Expression], before: Sequence[str]
) -> tuple[str, ...]:
    """Return an alias for each column: its own name, or a new one if that would hide an old column still in use.

    ClickHouse resolves a name to the new column of that name wherever it can.
    """
    hiding = {name for name, value in columns.items() if name in before and not is_itself(name, value)}
    meant: Counter[str] = Counter()
    for each in (*columns.values(), *beside) if hiding else ():
        meant.update(_meant(each) if _meant(each) is not None else hiding)
    own = {name: _meant(columns[name]) for name in hiding}
    hiding = {name for name in hiding if meant[name] > (own[name] is None or name in (own[name] or ()))}
    return with_others(tuple(columns), hiding, before)


def _meant(expression: Expression) -> set[str] | None:
    """Return the columns that an expression refers to; None for raw SQL, which only ClickHouse can resolve."""
    inside = list(walk([expression]))
    if any(isinstance(each, Raw) for each in inside):
        return None
    return {each.name for each in inside if isinstance(each, Column)}


def is_itself(name: str, value: Expression) -> bool:
    return isinstance(value, Column) and value.name == name


def with_others(names: tuple[str, ...], hiding: Container[str], before: Sequence[str]) -> tuple[str, ...]:
    prefix = free_prefix((*before, *names))
    return tuple(f"{prefix}{number}" if name in hiding else name for number, name in enumerate(names))
