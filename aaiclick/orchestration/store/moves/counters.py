"""Additions to counters of many tasks or groups at once; locks of tasks that a gate holds back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Integer, Update, bindparam, select, update

from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import groups, tasks


async def lock_gated(session: Session, ids: Sequence[int]) -> list[int]:
    """Lock those of these tasks that the gate of their group holds back; return their ids."""
    if not ids:
        return []
    rows = await session.rows(
        select(tasks.c.id)
        .where(session.any_of(tasks.c.id, sorted(ids)), tasks.c.gated.is_(True))
        .order_by(tasks.c.id)
        .with_for_update(key_share=True)
    )
    return [row.id for row in rows]


async def shift(session: Session, column: Column[Any], by: Mapping[int, int]) -> None:
    """Add to a counter of the rows in `by`, each its own amount, with one statement per distinct amount."""
    sizes: dict[int, list[int]] = {}
    for node, count in by.items():
        sizes.setdefault(count, []).append(node)
    for count, ids in sorted(sizes.items()):
        values = {"ids": session.dialect.pack(sorted(ids)), "more": count}
        await session.run(session.built(_SHIFTS[column.table.name, column.name]), values)


def _shift(column: Column[Any]) -> Callable[[Dialect], Update]:
    def build(dialect: Dialect) -> Update:
        which = dialect.in_ids(column.table.c.id)
        return update(column.table).where(which).values({column.name: column + bindparam("more", type_=Integer)})

    return build


_COUNTERS = {
    tasks: ("unmet_count", "dependents_count", "awaited_count"),
    groups: ("unmet_count", "open_count", "unended_count", "dependents_count", "awaited_count"),
}
_SHIFTS = {(table.name, name): _shift(table.c[name]) for table, names in _COUNTERS.items() for name in names}
