"""Reads results of tasks: those that a text refers to, and those that these refer to in turn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, Text, bindparam, cast, or_, select

from aaiclick.orchestration.rules.failed import failed_text
from aaiclick.orchestration.rules.graphs.graph import ancestors, children_of, descendants, reach
from aaiclick.orchestration.rules.values.reference_marks import marks_of
from aaiclick.orchestration.store.dialects.contract import Dialect
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import groups, tasks

NODES = ("task", "group")


@dataclass(slots=True)
class FoundResults:
    """Results by task; the tasks of each group, in the order of their ids; the output task of groups that have one."""

    texts: dict[int, str | None] = field(default_factory=dict)
    members: dict[int, list[int]] = field(default_factory=dict)
    outputs: dict[int, int] = field(default_factory=dict)


async def read_named(
    session: Session, texts: Iterable[str], *, but_not: Collection[int] = (), failures: bool = False
) -> FoundResults:
    """Return the results that these texts refer to, directly or through other results.

    Each round reads the results that the previous one named, until no new ones are named. Those of tasks in `but_not`
    are left out. With `failures`, a description of the failure takes the place of a result that will never come.
    """
    found = FoundResults()
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


async def _read_group(session: Session, group: int, found: FoundResults) -> list[int]:
    """Note what a group stands for, and return it: its output task, or the tasks inside it; nothing if it is gone."""
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
    """Return the tasks in a group, at any depth, in the order of their ids.

    Tasks made by runs of other tasks inside are left out: they are part of what these returned, or not wanted.
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


Nodes = set[tuple[str, int]]
"""Tasks and groups, as (kind, id)."""


async def returned_by(
    session: Session, nodes: Nodes, parents: Mapping[int, int | None]
) -> dict[int, dict[tuple[str, int], set[int]]]:
    """Return, for each of these nodes, the tasks and groups that its tasks returned, and that those returned in turn.

    Each comes with the groups around it; `parents` are all groups of the job. Nodes inside a group that is among them,
    or inside the node itself, are left out: a dependency on the group covers them. Nodes that lead to none are absent.
    """
    reading = _Returns(session, parents)
    left, known = set(nodes), set(nodes)
    while left:
        left = await reading.read(left) - known
        known |= left
    found = {node: reading.reached((kind, node)) for kind, node in nodes}
    return {node: reached for node, reached in found.items() if reached}


class _Returns:
    """Reads what tasks returned, and the groups around it; each node is read once."""

    def __init__(self, session: Session, parents: Mapping[int, int | None]) -> None:
        self.session = session
        self.children = children_of(parents)
        self.parents = dict(parents)
        """The group around each group of the job, and around each task that was read."""
        self.named: dict[int, Nodes] = {}

    async def read(self, nodes: Nodes) -> Nodes:
        """Read what these tasks, or the tasks in these groups, returned; return that."""
        facts, ids = (tasks.c.id, tasks.c.group_id, tasks.c.result), [node for kind, node in nodes if kind == "task"]
        if ids:
            rows = await self.session.rows(select(*facts).where(self.session.any_of(tasks.c.id, sorted(ids))))
            self.parents |= {row.id: row.group_id for row in rows}
            self.named |= {row.id: _nodes_in(row.result) for row in rows}
        inside = {node: reach(self.children, [node]) for kind, node in nodes if kind == "group"}
        if inside:
            among = self.session.any_of(tasks.c.group_id, sorted(set().union(*inside.values())))
            text = cast(tasks.c.result, Text)
            naming = or_(*(text.contains(f'"{kind}",') for kind in NODES))  # a cheap filter: the texts are parsed below
            rows = await self.session.rows(select(*facts).where(among, naming))
            for group, around in inside.items():
                self.named[group] = set().union(*(_nodes_in(row.result) for row in rows if row.group_id in around))
        return set().union(*(self.named.get(node, ()) for _, node in nodes))

    def reached(self, start: tuple[str, int]) -> dict[tuple[str, int], set[int]]:
        """Return all nodes that one leads to, each with the groups around it; see `returned_by` for those left out."""
        found: Nodes = set()
        left = [start]
        while left:
            fresh = self.named.get(left.pop()[1], set()) - found
            found |= fresh
            left += fresh
        covering = {node for kind, node in {start, *found} if kind == "group"}
        around = {each: self._around(each[1]) for each in found}
        return {each: groups for each, groups in around.items() if covering.isdisjoint(groups)}

    def _around(self, node: int) -> set[int]:
        group = self.parents.get(node)
        return set() if group is None else ancestors(self.parents, [group])


def _nodes_in(text: str | None) -> Nodes:
    """Return the tasks and groups that the text of a result refers to."""
    marks = () if text is None else marks_of(text)
    return {(kind, node) for kind, node in marks if kind in NODES and isinstance(node, int)}
