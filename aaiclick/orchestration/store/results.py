"""Reading results: those that a text names, and those that they name in turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, bindparam, select

from aaiclick.orchestration.rules.failed import failed_text
from aaiclick.orchestration.rules.graph import descendants
from aaiclick.orchestration.rules.marks import marks_of
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import groups, tasks

NODES = ("task", "group")


@dataclass(slots=True)
class Found:
    """Results by task; the tasks of each group, in the order in which they were made; the outputs of groups."""

    texts: dict[int, str | None] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)
    outputs: dict[int, int] = field(default_factory=dict)


async def read_named(
    session: Session, texts: Iterable[str], *, but_not: Collection[int] = (), failures: bool = False
) -> Found:
    """The results that these texts name, a wave at a time until none names another that is not known yet.

    Those of tasks in `but_not` are left out. With `failures`, what became of those that will have none takes its place.
    """
    found = Found()
    left = list(texts)
    while left:
        task_ids: set[int] = set()
        group_ids: set[int] = set()
        for text in left:
            for kind, payload in marks_of(text):
                if kind == "task" and isinstance(payload, int):
                    task_ids.add(payload)
                elif kind == "group" and isinstance(payload, int):
                    group_ids.add(payload)
        for group in sorted(group_ids - found.members.keys() - found.outputs.keys()):
            task_ids.update(await _read_group(session, group, found))
        wanted = sorted(task for task in task_ids - found.texts.keys() if task not in but_not)
        if not wanted:
            break
        rows = await session.rows(session.built(_results), {"ids": session.dialect.pack(wanted)})
        fresh = {row.id: row.result for row in rows}
        if failures:
            fresh |= {row.id: failed_text(row.id, row.status, row.error) for row in rows if row.result is None}
        found.texts |= fresh
        left = [text for text in fresh.values() if text is not None]
    return found


def _results(dialect: Dialect) -> Select[Any]:
    return select(tasks.c.id, tasks.c.result, tasks.c.status, tasks.c.error).where(dialect.in_ids(tasks.c.id))


async def _read_group(session: Session, group: int, found: Found) -> list[int]:
    """What a group stands for: its output, or the tasks inside it; nothing if it is gone."""
    row = await session.first(session.built(_group), {"group": group})
    if row is None:
        return []
    if row.output_task_id is not None:
        found.outputs[group] = row.output_task_id
        return [row.output_task_id]
    found.members[group] = await _inside(session, row.job_id, group)
    return found.members[group]


def _group(_: Dialect) -> Select[Any]:
    return select(groups.c.job_id, groups.c.output_task_id).where(groups.c.id == bindparam("group"))


async def _inside(session: Session, job_id: int, group: int) -> list[int]:
    """The tasks in a group, at any depth, in the order in which they were made.

    Those that others inside have made while they ran are part of what these returned, or not wanted.
    """
    rows = await session.rows(session.built(_parents), {"job": job_id})
    inside = descendants({row.id: row.parent_group_id for row in rows}, [group])
    found = await session.rows(session.built(_members), {"ids": session.dialect.pack(sorted(inside))})
    members = {row.id for row in found}
    return [row.id for row in found if row.parent_task_id not in members]


def _parents(_: Dialect) -> Select[Any]:
    return select(groups.c.id, groups.c.parent_group_id).where(groups.c.job_id == bindparam("job"))


def _members(dialect: Dialect) -> Select[Any]:
    chosen = select(tasks.c.id, tasks.c.parent_task_id).where(dialect.in_ids(tasks.c.group_id))
    return chosen.order_by(tasks.c.id)


async def returned_by(session: Session, task_ids: Iterable[int]) -> dict[int, set[tuple[str, int]]]:
    """For each of these tasks that returned tasks or groups: those, and what they returned in turn."""
    named: dict[int, set[tuple[str, int]]] = {}
    left = set(task_ids)
    while left:
        which = session.any_of(tasks.c.id, sorted(left))
        rows = await session.rows(select(tasks.c.id, tasks.c.result).where(which, tasks.c.result.is_not(None)))
        for row in rows:
            marks = marks_of(row.result)
            named[row.id] = {(kind, node) for kind, node in marks if kind in NODES and isinstance(node, int)}
        found = {node for row in rows for kind, node in named[row.id] if kind == "task"}
        left = found - named.keys()
    return {task: _all_of(task, named) for task in task_ids if named.get(task)}


def _all_of(task: int, named: dict[int, set[tuple[str, int]]]) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    left = [("task", task)]
    while left:
        kind, node = left.pop()
        fresh = named.get(node, set()) - found if kind == "task" else set()
        found |= fresh
        left += fresh
    return found
