"""Extension of a graph that is stored already, and may be running.

Locks are taken in this order: the graph's row (else two changes could close a cycle together), the queue rows of tasks
that will have to wait longer, tasks by id, groups with children first, the job last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Row, delete, select, update

from aaiclick.errors import CrossJobDependency, GroupComplete, JobEnded, NotFound
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import Plan, Shape, Stored, ancestors, descendants, make_plan
from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK, TaskStatus
from aaiclick.orchestration.rules.triggers import AMISS, MET, NEVER, ONE, When, is_broken
from aaiclick.orchestration.store.graphs.inserts import (
    insert_graph,
    names_of,
    refuse_cycles,
    refuse_too_many,
    refuse_unknown,
    shape_of,
)
from aaiclick.orchestration.store.graphs.new_edges import drop_known_edges, follow_results, too_late
from aaiclick.orchestration.store.moves.counters import lock_gated, shift
from aaiclick.orchestration.store.moves.dependency_states import group_standing, task_standing
from aaiclick.orchestration.store.moves.facts import OPEN, Targets, told_of
from aaiclick.orchestration.store.moves.failure_causes import find_causes
from aaiclick.orchestration.store.moves.queue import leave_delay, leave_queue, make_ready
from aaiclick.orchestration.store.moves.ripples import spread
from aaiclick.orchestration.store.object_tables.inputs import late_arguments, makers_to_come, pin_inputs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, graph_locks, groups, jobs, ripples, tasks
from aaiclick.orchestration.store.transitions import lock_groups, lock_tasks, note_growth


async def extend_job(session: Session, submission: Submission) -> Plan:
    """Add tasks, groups and edges to a stored job.

    It works on a copy: the caller's submission still has all its edges if the transaction has to be retried.
    """
    extension = Extension(session, replace(submission), shape_of(submission))
    await extension.lock()
    await extension.look()
    plan = await extension.write()
    await spread(session, submission.job_id, await told_by(plan, extension), extension.count_in_job)
    return plan


@dataclass(slots=True)
class Extension:
    """One extension of a graph: what is added, and the stored rows that it touches."""

    session: Session
    submission: Submission
    shape: Shape
    parents: dict[int, int | None] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    """Groups that waited for something when the graph was locked; no other group can begin to wait meanwhile."""
    names: dict[int, str] = field(default_factory=dict)
    old_tasks: dict[int, Row[Any]] = field(default_factory=dict)
    old_groups: dict[int, Row[Any]] = field(default_factory=dict)
    held_tasks: set[int] = field(default_factory=set)
    """Stored tasks that will wait for something more."""
    held_groups: set[int] = field(default_factory=set)
    """Stored groups that will wait for something more."""
    inside: set[int] = field(default_factory=set)
    """The held groups, with all groups inside them."""
    unqueued: set[int] = field(default_factory=set)
    """The tasks that are taken out of the queue for now: the held ones and those inside held groups."""
    joined: set[int] = field(default_factory=set)
    """Stored groups that get new members."""
    guards: Sequence[Row[Any]] = ()
    """The edges to joined groups that wait, and to groups around these."""
    openings: dict[int, Row[Any]] = field(default_factory=dict)
    """Per group, the OPEN ripple that is still telling its tasks and groups that they may begin."""
    grown_by: frozenset[int] = frozenset()
    """The tasks whose runs made what is added, if runs did: they are locked too."""
    told: frozenset[int] = frozenset()
    """The nodes that wait for those runs."""
    kept: frozenset[int] = frozenset()
    """Stored tasks that the job's result comes to refer to: locked too, so that one that completes sees its `kept`."""

    @property
    def job_id(self) -> int:
        return self.submission.job_id

    def _is_new(self, node: int) -> bool:
        return node in self.shape.tasks or node in self.shape.groups

    # ------------------------------------------------------------ lock

    async def lock(self) -> None:
        """Lock all stored rows that the new nodes and edges touch, except the job's."""
        await self._lock_graph()
        await follow_results(self.session, self.submission, self.shape, self.parents)
        stored = {edge.next.id: edge.next.kind for edge in self.submission.edges if not self._is_new(edge.next.id)}
        self.held_tasks = {node for node, kind in stored.items() if kind == "task"}
        self.held_groups = {node for node, kind in stored.items() if kind == "group"}
        around = (*self.shape.tasks.values(), *self.shape.groups.values())
        self.joined = {group for group in around if group is not None and group in self.parents}
        await self.find_queued()
        await self._unqueue()
        await self._find_guards()
        await self._lock_nodes()
        await self._unqueue()
        await self._lock_openings()

    async def find_queued(self) -> None:
        """Find the tasks that will wait for more and may be in the queue: held ones, and all inside held groups."""
        self.inside = descendants(self.parents, self.held_groups)
        self.unqueued = self.held_tasks | await tasks_inside(self.session, self.inside)

    async def _lock_graph(self) -> None:
        row = await self.session.first(
            select(graph_locks.c.job_id).where(graph_locks.c.job_id == self.job_id).with_for_update()
        )
        if row is None:
            raise _no_such_job(self.job_id)
        found = await self.session.rows(
            select(groups.c.id, groups.c.parent_group_id, groups.c.name, groups.c.unmet_count).where(
                groups.c.job_id == self.job_id
            )
        )
        self.parents = {group.id: group.parent_group_id for group in found}
        self.closed = {group.id for group in found if group.unmet_count}
        self.names = {group.id: f"group {group.name!r}" for group in found} | names_of(self.submission)

    async def _unqueue(self) -> None:
        """Delete queue rows: before the tasks are locked, as a claim would, and again after, for those ready since."""
        if self.unqueued:
            await leave_queue(self.session, self.session.any_of(tasks.c.id, sorted(self.unqueued)))

    async def _find_guards(self) -> None:
        closed = ancestors(self.parents, self.joined & self.closed)
        if closed:
            held_back = self.session.any_of(dependencies.c.next_id, sorted(closed))
            self.guards = await self.session.rows(
                select(dependencies.c.previous_id, dependencies.c.previous_type, dependencies.c.next_id).where(
                    held_back
                )
            )

    async def _lock_openings(self) -> None:
        """Lock the OPEN ripples of touched groups: no step of them may tell tasks to begin that are to wait."""
        touched = sorted(self.joined | self.inside)
        if touched:
            found = await self.session.rows(
                select(ripples)
                .where(
                    ripples.c.job_id == self.job_id,
                    ripples.c.kind == OPEN,
                    self.session.any_of(ripples.c.node_id, touched),
                )
                .order_by(ripples.c.id)
                .with_for_update()
            )
            self.openings = {ripple.node_id: ripple for ripple in found}

    async def _lock_nodes(self) -> None:
        kinds: dict[int, str] = {guard.previous_id: guard.previous_type for guard in self.guards}
        kinds |= {end.id: end.kind for edge in self.submission.edges for end in (edge.previous, edge.next)}
        kinds.update((group, "group") for group in (*self.shape.tasks.values(), *self.shape.groups.values()) if group)
        old = {node: kind for node, kind in kinds.items() if not self._is_new(node)}
        task_ids = {node for node, kind in old.items() if kind == "task"} | self.unqueued
        task_ids |= await makers_to_come(self.session, self.submission, self.parents, grown=bool(self.grown_by))
        task_ids |= self.grown_by | self.kept
        group_ids = ancestors(self.parents, {node for node, kind in old.items() if kind == "group"}) | self.inside
        self.old_tasks = {row.id: row for row in await lock_tasks(self.session, sorted(task_ids))}
        if group_ids:
            self.old_groups = {row.id: row for row in await lock_groups(self.session, sorted(group_ids))}
        for row in (*self.old_tasks.values(), *self.old_groups.values()):
            if row.job_id != self.job_id:
                what = f"{kinds.get(row.id, 'task')} {row.id}"
                raise CrossJobDependency(what=what, other_job_id=row.job_id, job_id=self.job_id)

    # ------------------------------------------------------------ look

    async def look(self) -> None:
        """Read the stored graph around the extension, which is locked; raise if the extension is not possible."""
        await drop_known_edges(self.session, self.submission, self.shape)
        refuse_unknown(self.submission, self.shape, set(self.old_tasks) | set(self.old_groups))
        whole = Shape(dict(self.shape.tasks), dict(self.shape.groups), set(self.shape.edges))
        if self.may_close_a_cycle():
            await self._add_stored_shape(whole)
        refuse_cycles(whole, self.names)

    def may_close_a_cycle(self) -> bool:
        """Return whether the stored graph has to be searched for cycles."""
        return bool(self.held_tasks or self.held_groups or (self.joined and self.shape.edges))

    async def _add_stored_shape(self, whole: Shape) -> None:
        edges = await self.session.rows(
            select(dependencies.c.previous_id, dependencies.c.next_id).where(dependencies.c.job_id == self.job_id)
        )
        whole.edges.update((row.previous_id, row.next_id) for row in edges)
        whole.groups.update(self.parents)
        ends = {node for edge in whole.edges for node in edge} - whole.groups.keys() - whole.tasks.keys()
        if ends:
            which = self.session.any_of(tasks.c.id, sorted(ends))
            for row in await self.session.rows(select(tasks.c.id, tasks.c.group_id, tasks.c.name).where(which)):
                whole.tasks[row.id] = row.group_id
                self.names.setdefault(row.id, f"task {row.name!r}")

    def _stored(self) -> Stored:
        stored = Stored(parents=self.parents)
        rows = (*self.old_tasks.values(), *self.old_groups.values())
        stored.rules = {row.id: When(row.trigger_rule) for row in rows if row.trigger_rule != When.ALL_COMPLETED}
        for task in self.old_tasks.values():
            stored.standing[task.id] = task_standing(task.status)
        for group in self.old_groups.values():
            stored.standing[group.id] = group_standing(group)
            stored.depth[group.id] = group.depth
            if group.unmet_count or self._is_untold(group.id):
                stored.closed_groups.add(group.id)
        self._find_drowned(stored)
        return stored

    def _find_drowned(self, stored: Stored) -> None:
        """Find the joined groups that will never begin (`drowned`), or are not needed (`spared`)."""
        broken: dict[int, int] = {}
        for guard in self.guards:
            rule, standing = stored.rules.get(guard.next_id, When.ALL_COMPLETED), stored.standing[guard.previous_id]
            row = self.old_groups.get(guard.next_id)
            never = row is not None and row.awaited_count == NEVER and row.amiss and standing in AMISS
            if never if rule in ONE else is_broken(rule, standing):
                broken[guard.next_id] = guard.previous_id
        never = {group.id for group in self.old_groups.values() if group.awaited_count == NEVER} - broken.keys()
        for group in self.joined:
            around = ancestors(self.parents, [group])
            if found := broken.keys() & around:
                stored.drowned[group] = broken[min(found)]
            elif never & around:
                stored.spared.add(group)

    def _is_untold(self, group: int) -> bool:
        """Return whether the group may begin, but none of its tasks and groups has been told yet."""
        return group in self.openings and self.openings[group].after_id == 0

    # ------------------------------------------------------------ write

    async def write(self) -> Plan:
        """Insert the new rows, and change the counters of the stored rows that they touch, except the job's."""
        session = self.session
        plan = make_plan(self.shape, self._stored())
        await _note_empty(session, plan, self.parents)
        facts = (jobs.c.reserved_for, jobs.c.priority, jobs.c.total_tasks)
        job = await session.first(select(*facts).where(jobs.c.id == self.job_id))
        if job is None:
            raise _no_such_job(self.job_id)
        refuse_too_many(job.total_tasks + len(self.submission.tasks))
        for task in self.submission.tasks:
            task.priority = task.priority or job.priority
        await insert_graph(session, self.submission, plan, await session.now(), job.reserved_for)
        await pin_inputs(session, late_arguments(self.submission, self.shape, grown=bool(self.grown_by)))
        for table, old in ((tasks, self.old_tasks), (groups, self.old_groups)):
            more = {node: count for node, count in plan.dependents.items() if node in old}
            await shift(session, table.c.dependents_count, more)
        await self._hold_back(plan)
        await self._reopen(plan)
        if plan.doomed or plan.unneeded:
            await leave_delay(session, {*plan.doomed, *plan.unneeded})
        return plan

    async def _hold_back(self, plan: Plan) -> None:
        """Let stored tasks and groups wait for more; the members of groups that close are gated."""
        raised = {node: plan.stored_unmet[node] for node in self.held_tasks if plan.stored_unmet[node]}
        asked = {node for node in self.held_tasks if plan.stored_inputs[node]}
        for node in raised.keys() | asked:
            if not _may_wait(self.old_tasks[node], grown=node in self.told):
                raise too_late(self.submission, self.names, node, self.old_tasks[node].status)
        await _count_inputs(self, plan)
        group_unmet, gated = await self._close_groups(plan)
        await shift(self.session, groups.c.unmet_count, group_unmet)
        task_unmet = Counter(raised)
        task_unmet.update(gated)
        await shift(self.session, tasks.c.unmet_count, task_unmet)
        if gated:
            which = self.session.any_of(tasks.c.id, sorted(gated))
            await self.session.run(update(tasks).where(which).values(gated=True))
        await make_ready(self.session, sorted(self.unqueued))

    async def _close_groups(self, plan: Plan) -> tuple[Counter[int], set[int]]:
        """Return by how much the `unmet_count` of groups grows, and the tasks whose gate closes."""
        closing = Counter({node: plan.stored_unmet[node] for node in self.held_groups if plan.stored_unmet[node]})
        more: Counter[int] = Counter()
        gated: set[int] = set()
        stopped: list[int] = []
        while closing:
            group, count = closing.popitem()
            was_open = not self.old_groups[group].unmet_count and not more[group]
            more[group] += count
            if was_open and group in self.openings:
                stopped.append(self.openings[group].id)
            if was_open and not self._is_untold(group):
                gated.update(_members_to_gate(self, group))
                closing.update(child for child, parent in self.parents.items() if parent == group)
        if stopped:
            await self.session.run(delete(ripples).where(self.session.any_of(ripples.c.id, stopped)))
            gated.difference_update(await lock_gated(self.session, sorted(gated)))
        return more, gated

    async def _reopen(self, plan: Plan) -> None:
        """Add to the open members of stored groups; one that is over is only reopened while nothing waits for it."""
        for column in (groups.c.open_count, groups.c.unended_count):
            left = Counter(plan.stored_open)
            added: Counter[int] = Counter()
            while left:
                group, count = left.popitem()
                row = self.old_groups[group]
                was_over = not row._mapping[column.name] and not added[group]
                added[group] += count
                if was_over:
                    if row.dependents_count:
                        raise GroupComplete(what="a new task", group=repr(row.name), waiting=str(row.dependents_count))
                    if row.parent_group_id is not None:
                        left[row.parent_group_id] += 1
            await shift(self.session, column, added)

    async def count_in_job(self) -> None:
        """Add the new tasks to the job's counters, after all other locks; raise JobEnded if the job has ended."""
        count = len(self.submission.tasks)
        locked = select(jobs.c.status).where(jobs.c.id == self.job_id).with_for_update(key_share=True)
        row = await self.session.first(locked)
        if row is None:
            raise _no_such_job(self.job_id)
        if row.status in ENDED_JOB:
            raise JobEnded(job_id=self.job_id, status=row.status)
        more = {"total_tasks": jobs.c.total_tasks + count, "open_tasks": jobs.c.open_tasks + count}
        await self.session.run(update(jobs).where(jobs.c.id == self.job_id).values(**more))
        await note_growth(self.session, self.job_id, row.status, count)


async def told_by(plan: Plan, extension: Extension) -> Targets:
    """Return what is told to nodes that will never run, are not needed, or get inputs that have ended."""
    around = extension.shape.groups.keys() | extension.old_groups.keys()
    failed = plan.doomed | {node: plan.broken[node] for node in plan.stored_news if node in plan.broken}
    causes = await find_causes(extension.session, extension.job_id, failed)
    return told_of(plan, around, causes)


async def _count_inputs(extension: Extension, plan: Plan) -> None:
    """Add to the `awaited_count` of stored nodes whose rule needs one input, unless that is decided already."""
    for table, old in ((tasks, extension.old_tasks), (groups, extension.old_groups)):
        waiting = {node for node in plan.stored_inputs if node in old and old[node].awaited_count > MET}
        await shift(extension.session, table.c.awaited_count, {node: plan.stored_inputs[node] for node in waiting})


async def tasks_inside(session: Session, inside: set[int]) -> set[int]:
    """Return the tasks directly in these groups."""
    if not inside:
        return set()
    which = session.any_of(tasks.c.group_id, sorted(inside))
    return {row.id for row in await session.rows(select(tasks.c.id).where(which))}


async def _note_empty(session: Session, plan: Plan, parents: dict[int, int | None]) -> None:
    """Note stored groups that new edges start from, and that count as complete because they have no tasks."""
    for group in {previous for previous, _ in plan.met} & parents.keys():
        inside = session.any_of(tasks.c.group_id, sorted(descendants(parents, [group])))
        if await session.scalar(select(tasks.c.id).where(inside).limit(1)) is None:
            plan.empty_waited_for.add(group)


def _members_to_gate(extension: Extension, group: int) -> list[int]:
    """Return the tasks directly in this group; raise AlreadyStarted if one has begun."""
    members = [row for row in extension.old_tasks.values() if row.group_id == group]
    for row in members:
        if row.status != TaskStatus.PENDING:
            begun = f"begun (task {row.id} is {row.status})"
            raise too_late(extension.submission, extension.names, group, begun)
    return [row.id for row in members]


def _may_wait(task: Row[Any], *, grown: bool) -> bool:
    """Return whether a stored task may get another input; `grown`: it waits for a run that made the input.

    A task that waits for such a run has not begun; if it failed or was cancelled, it may be cleared later. One whose
    rule needs one input may have begun: what comes later changes nothing for it.
    """
    if task.status == TaskStatus.PENDING:
        return True
    return grown and (task.trigger_rule in ONE or (task.status in ENDED_TASK and task.status != TaskStatus.COMPLETED))


def _no_such_job(job_id: int) -> NotFound:
    return NotFound(what="job", field="id", value=job_id, hint="List them with: aaiclick job list")
