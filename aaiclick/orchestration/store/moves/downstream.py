"""Everything downstream of some tasks, through groups at any depth: what has to run again when these do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, select

from aaiclick.orchestration.rules.graphs.graph import ancestors, children_of, reach
from aaiclick.orchestration.rules.triggers import When
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, tasks

WAVES_ASKED = 12
"""How many waves are read one by one; for a deeper graph, the whole job is read at once."""


@dataclass(slots=True)
class Downstream:
    """The tasks to clear, nearest first, each with its group; and the groups that are affected."""

    parents: dict[int, int | None]
    """All groups of the job, each with the group around it."""
    tasks: dict[int, int | None] = field(default_factory=dict)
    reopened: set[int] = field(default_factory=set)
    """Groups with such a task inside, at any depth: they will be open again."""
    held: set[int] = field(default_factory=set)
    """Groups that wait for such a task or a reopened group, with all groups inside them."""
    ruled: set[int] = field(default_factory=set)
    """Groups with another trigger rule than ALL_COMPLETED, with all groups inside them."""
    stale: set[int] = field(default_factory=set)
    """Groups whose counters may lack inputs that have ended; set by the caller."""
    made: set[int] = field(default_factory=set)
    """Those of `tasks` that runs of others of them made: they are removed, and the new runs make new ones."""
    made_groups: set[int] = field(default_factory=set)
    """Groups that such runs made, with all groups inside them."""

    @property
    def lasting(self) -> list[int]:
        """Return the tasks that are not removed, nearest first."""
        return [task for task in self.tasks if task not in self.made]

    @property
    def touched(self) -> set[int]:
        """Return the groups whose counters may change, with those around them."""
        return self.reopened | ancestors(self.parents, self.held | self.stale)


async def find_downstream(session: Session, job_id: int, roots: Iterable[int]) -> Downstream:
    """Return these tasks of the job with everything downstream. Unless its graph is locked, it may change meanwhile."""
    facts = (groups.c.id, groups.c.parent_group_id, groups.c.parent_task_id, groups.c.trigger_rule)
    found = await session.rows(select(*facts).where(groups.c.job_id == job_id))
    downstream = Downstream({row.id: row.parent_group_id for row in found})
    inside = children_of(downstream.parents)
    downstream.ruled = reach(inside, (row.id for row in found if row.trigger_rule != When.ALL_COMPLETED))
    groups_of = children_of({row.id: row.parent_task_id for row in found})
    graph = _Graph(session, job_id)
    wave = await graph.tasks(sorted(roots))
    while wave:
        downstream.tasks |= wave
        reopened = ancestors(downstream.parents, _known(wave.values())) - downstream.reopened
        downstream.reopened |= reopened
        following = await graph.following([*wave, *reopened])
        held = reach(inside, (node for node, kind in following.items() if kind == "group")) - downstream.held
        downstream.held |= held
        waiting = [node for node, kind in following.items() if kind == "task" and node not in downstream.tasks]
        made_groups = reach(inside, (group for task in wave for group in groups_of.get(task, ())))
        made = await graph.made_by(sorted(wave)) | await graph.members(sorted(made_groups - downstream.made_groups))
        downstream.made_groups |= made_groups
        downstream.made.update(made)
        nearby = await graph.tasks(sorted(waiting)) | await graph.members(sorted(held)) | made
        wave = {task: nearby[task] for task in sorted(nearby) if task not in downstream.tasks}
    return downstream


def _known(ids: Iterable[int | None]) -> set[int]:
    return {one for one in ids if one is not None}


class _Graph:
    """Reads the graph for one wave at a time; after WAVES_ASKED waves it reads the whole job at once."""

    def __init__(self, session: Session, job_id: int) -> None:
        self.session = session
        self.job_id = job_id
        self.waves = 0
        self.group_of: dict[int, int | None] = {}
        self.tasks_of: dict[int, list[int]] = {}
        self.next_of: dict[int, list[tuple[int, str]]] = {}
        self.made_of: dict[int, list[int]] = {}

    @property
    def is_whole(self) -> bool:
        return self.waves > WAVES_ASKED

    async def following(self, nodes: Sequence[int]) -> dict[int, str]:
        """Return the nodes that wait for these, each with its kind."""
        self.waves += 1
        if self.is_whole:
            if not self.group_of:
                await self._read()
            return dict(pair for node in nodes for pair in self.next_of.get(node, ()))
        rows = await self.session.rows(
            select(dependencies.c.next_id, dependencies.c.next_type).where(
                self.session.any_of(dependencies.c.previous_id, nodes)
            )
        )
        return {row.next_id: row.next_type for row in rows}

    async def tasks(self, ids: Sequence[int]) -> dict[int, int | None]:
        """Return these tasks, each with its group."""
        if self.is_whole:
            return {task: self.group_of[task] for task in ids}
        return await self._groups_of(self.session.any_of(tasks.c.id, ids)) if ids else {}

    async def members(self, of: Sequence[int]) -> dict[int, int | None]:
        """Return the tasks directly in these groups, each with its group."""
        if self.is_whole:
            return {task: group for group in of for task in self.tasks_of.get(group, ())}
        return await self._groups_of(self.session.any_of(tasks.c.group_id, of)) if of else {}

    async def made_by(self, parents: Sequence[int]) -> dict[int, int | None]:
        """Return the tasks that runs of these tasks made, each with its group."""
        if self.is_whole:
            return {task: self.group_of[task] for parent in parents for task in self.made_of.get(parent, ())}
        return await self._groups_of(self.session.any_of(tasks.c.parent_task_id, parents)) if parents else {}

    async def _groups_of(self, which: ColumnElement[bool]) -> dict[int, int | None]:
        rows = await self.session.rows(select(tasks.c.id, tasks.c.group_id).where(which).order_by(tasks.c.id))
        return {row.id: row.group_id for row in rows}

    async def _read(self) -> None:
        facts = (tasks.c.id, tasks.c.group_id, tasks.c.parent_task_id)
        for row in await self.session.rows(select(*facts).where(tasks.c.job_id == self.job_id).order_by(tasks.c.id)):
            self.group_of[row.id] = row.group_id
            if row.group_id is not None:
                self.tasks_of.setdefault(row.group_id, []).append(row.id)
            if row.parent_task_id is not None:
                self.made_of.setdefault(row.parent_task_id, []).append(row.id)
        edges = await self.session.rows(
            select(dependencies.c.previous_id, dependencies.c.next_id, dependencies.c.next_type).where(
                dependencies.c.job_id == self.job_id
            )
        )
        for edge in edges:
            self.next_of.setdefault(edge.previous_id, []).append((edge.next_id, edge.next_type))
