"""The completion of runs that made tasks: these are inserted in the same fenced transaction, or not at all.

A node that waits for the run's task also waits for what the run returned: it gets an edge from each returned node, or
from one group around these if there would be too many edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, select

from aaiclick.errors import ClaimLost
from aaiclick.ids import new_id
from aaiclick.orchestration.models import Done, Group, Receipt, Task
from aaiclick.orchestration.models.children import Children, NewGroup, stored_node
from aaiclick.orchestration.models.node import Edge, Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import ancestors, descendants
from aaiclick.orchestration.rules.states import LIVE_TASK, JobStatus
from aaiclick.orchestration.store.claim_ends import complete_claims
from aaiclick.orchestration.store.claims.expectations import note_unmet
from aaiclick.orchestration.store.graphs.extensions import Extension, tasks_inside, told_by
from aaiclick.orchestration.store.graphs.inserts import keep_results, shape_of
from aaiclick.orchestration.store.graphs.kept_results import keep_stored, named_by, returned_stored
from aaiclick.orchestration.store.moves.early_endings import lock_graph
from aaiclick.orchestration.store.moves.ripples import settle
from aaiclick.orchestration.store.object_tables.inputs import pin_inputs
from aaiclick.orchestration.store.object_tables.references import settle_tables
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.stored_results import returned_by
from aaiclick.orchestration.store.tables import dependencies, groups, tasks
from aaiclick.orchestration.store.transitions import note_growth

EDGES_MAX = 200
"""If there were more edges than this from returned to waiting nodes, one group is put around the returned ones."""


async def complete_with_children(session: Session, worker_id: int, dones: Sequence[Done]) -> Receipt:
    """Complete runs of one job that made tasks, and insert these tasks.

    Raise ClaimLost if the fence of one of the runs does not hold.
    """
    growing = {done.task_id: done for done in dones}
    parents = await _lock_parents_graph(session, growing)
    submission, told = await _submission(session, growing, parents)
    giving = [done for done in dones if parents[done.task_id].kept and returned_stored(done)]
    growth = _Growth(
        session,
        submission,
        shape_of(submission),
        grown_by=frozenset(growing),
        told=frozenset(told),
        kept=await named_by(session, giving),
    )
    await growth.lock()
    for done in dones:
        row = growth.old_tasks.get(done.task_id)
        if row is None or (row.epoch, row.worker_id) != (done.epoch, worker_id) or row.status not in LIVE_TASK:
            raise _lost(done)
    await growth.look()
    plan = await growth.write()
    ended = await complete_claims(session, worker_id, dones)
    assert len(ended) == len(dones), "rows that are locked and live complete"
    accepted = {(done.task_id, done.epoch) for done in dones}
    holding = [done for done in dones if done.holds]
    if holding:
        await settle_tables(session, holding, [(done.task_id, done.epoch) for done in holding])
    if any(done.unmet for done in dones):
        await note_unmet(session, worker_id, dones, accepted)
    await pin_inputs(session, await growth.arguments_of_those_who_wait())
    await keep_stored(session, submission.job_id, giving, growth.kept)
    more = Counter(total_tasks=len(submission.tasks), open_tasks=len(submission.tasks))
    await note_growth(session, submission.job_id, JobStatus.RUNNING, len(submission.tasks))
    news = {submission.job_id: await told_by(plan, growth)}
    rippling = await settle(session, ended, more={submission.job_id: more}, told=news)
    return Receipt(accepted, rippling)


async def _lock_parents_graph(session: Session, growing: Mapping[int, Done]) -> dict[int, Row[Any]]:
    """Lock the graph of the job; return the rows of these tasks, which are not locked themselves yet.

    They are read after the graph is locked: the transaction that held the lock may have set their `kept`.
    """
    mine = session.any_of(tasks.c.id, sorted(growing))
    job_ids = {row.job_id for row in await session.rows(select(tasks.c.job_id).where(mine).distinct())}
    assert len(job_ids) <= 1, "those who grow together are of one job"
    for job_id in job_ids:
        if not await lock_graph(session, job_id):
            raise _lost(next(iter(growing.values())))
    facts = (tasks.c.id, tasks.c.job_id, tasks.c.group_id, tasks.c.name, tasks.c.kept)
    found = {row.id: row for row in await session.rows(select(*facts).where(mine))}
    for task_id, done in growing.items():
        if task_id not in found:
            raise _lost(done)
    return found


async def _submission(
    session: Session, growing: Mapping[int, Done], parents: Mapping[int, Row[Any]]
) -> tuple[Submission, set[int]]:
    """Return all that the runs made, with edges from what they returned to the waiting nodes; and the ids of these."""
    waiting = await _waiting_for(session, list(growing))
    (job_id,) = {parent.job_id for parent in parents.values()}
    whole = Submission(job_id)
    everyone: set[int] = set()
    for task_id, done in growing.items():
        parent = parents[task_id]
        assert done.children is not None
        own = await _own_waiting(session, done.children)
        told = waiting.get(task_id, []) + own.get(task_id, [])
        inside = await _groups(session, job_id, parent.group_id, done.children, told)
        if around := await _around(session, parent, done.children, inside, own):
            told = list(dict.fromkeys([*told, *around]))
        children = _gathered(done.children, told, parent.group_id, parent.name)
        made = children.submission(job_id, task_id, done.epoch)
        made.edges += _edges(made, children.returned, told, inside)
        if parent.kept:
            keep_results(made, done.children.returned)
        whole.tasks += made.tasks
        whole.groups += made.groups
        whole.edges += made.edges
        everyone.update(node for node, _ in told)
    return whole, everyone


async def _own_waiting(session: Session, children: Children) -> dict[int, list[tuple[int, str]]]:
    """Return, by stored node, the nodes that the run itself made wait for it.

    They count also as waiting for what the stored nodes returned. The run's own task may be one of these nodes.
    """
    made = {task.id for task in children.tasks} | {group.id for group in children.groups}
    own: dict[int, list[tuple[int, str]]] = {}
    named: set[tuple[str, int]] = set()
    for edge in children.edges:
        if edge.previous_id not in made:
            own.setdefault(edge.previous_id, []).append((edge.next_id, edge.next_type))
            named.add((edge.previous_type, edge.previous_id))
    returned = await returned_by(session, named, await _parents(session, children.job_id)) if named else {}
    for previous, found in returned.items():
        for _, node in found:
            own.setdefault(node, []).extend(own[previous])
    return own


async def _groups(
    session: Session, job_id: int, group_id: int | None, children: Children, told: Sequence[tuple[int, str]]
) -> dict[int, int | None]:
    """Return the group around each new group, and around each group of the job if it may matter what contains what."""
    inside = {group.id: group.parent_group_id for group in children.groups}
    if any(kind == "group" for _, kind in told) or not _is_inside(children, group_id, inside):
        inside |= await _parents(session, job_id)
    return inside


async def _parents(session: Session, job_id: int) -> dict[int, int | None]:
    """Return all groups of the job, each with the group around it."""
    facts = select(groups.c.id, groups.c.parent_group_id).where(groups.c.job_id == job_id)
    return {row.id: row.parent_group_id for row in await session.rows(facts)}


def _lost(done: Done) -> ClaimLost:
    return ClaimLost(task_id=done.task_id, epoch=done.epoch, move="complete")


class _Growth(Extension):
    """An extension of the job by its own runs; `settle` changes the job's counters with the completion."""

    __slots__ = ()

    async def arguments_of_those_who_wait(self) -> dict[int, str]:
        """Return the arguments of stored tasks that get an edge from a stored node, which may be complete already."""
        late = {edge.next.id for edge in self.submission.edges if not self._is_new(edge.previous.id)}
        waiting = sorted(late & self.old_tasks.keys())
        if not waiting:
            return {}
        which = (self.session.any_of(tasks.c.id, waiting), tasks.c.needs_inputs)
        return {row.id: row.kwargs for row in await self.session.rows(select(tasks.c.id, tasks.c.kwargs).where(*which))}

    async def find_queued(self) -> None:
        """Find the queued tasks that will wait for more: only stored nodes that the run itself made wait can be queued.

        Nodes that wait for a run which has not completed are not in the queue, nor is what they hold back.
        """
        others = self.held_groups - self.told
        inside = descendants(self.parents, others)
        self.inside = self.held_groups | inside
        self.unqueued = (self.held_tasks - self.told) | await tasks_inside(self.session, inside)

    def may_close_a_cycle(self) -> bool:
        """Return whether the stored graph has to be searched for cycles.

        It has not if no edge starts at a stored node, the only stored nodes that wait for more are those that wait for
        the runs anyway, and all that is new is in no other stored groups than those around the task that made it.
        """
        if any(not self._is_new(edge.previous.id) for edge in self.submission.edges):
            return True
        if (self.held_tasks | self.held_groups) - self.told:
            return True
        around = {task: self._groups_around(task) for task in self.grown_by}
        made: list[Task | Group] = [*self.submission.tasks, *self.submission.groups]
        return any(
            node._group_id in self.parents and node._group_id not in around[node.parent_task_id or 0] for node in made
        )

    def _groups_around(self, task: int) -> set[int]:
        group = self.old_tasks[task].group_id
        return set() if group is None else ancestors(self.parents, [group])


async def _waiting_for(session: Session, nodes: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
    """Return the nodes that wait for each of these."""
    rows = await session.rows(
        select(dependencies.c.previous_id, dependencies.c.next_id, dependencies.c.next_type).where(
            session.any_of(dependencies.c.previous_id, nodes)
        )
    )
    waiting: dict[int, list[tuple[int, str]]] = {}
    for row in rows:
        waiting.setdefault(row.previous_id, []).append((row.next_id, row.next_type))
    return waiting


async def _around(
    session: Session,
    parent: Row[Any],
    children: Children,
    inside: Mapping[int, int | None],
    own: Mapping[int, list[tuple[int, str]]],
) -> list[tuple[int, str]]:
    """Return the nodes that wait for groups around the run's task, if something returned is outside of its group.

    Without an edge from that, they would not wait for it.
    """
    if _is_inside(children, parent.group_id, inside):
        return []
    chain = sorted(_chain(inside, parent.group_id))
    waiting = await _waiting_for(session, chain)
    return [each for group in chain for each in (*waiting.get(group, ()), *own.get(group, ()))]


def _is_inside(children: Children, group_id: int | None, inside: Mapping[int, int | None]) -> bool:
    """Return whether all that was returned is in this group, at any depth, as far as groups are known."""
    if group_id is None:
        return True
    made = {task.id: task.group_id for task in children.tasks}
    made |= {group.id: group.parent_group_id for group in children.groups}
    return all(group_id in _chain(inside, made.get(node)) for _, node in children.returned)


def _chain(inside: Mapping[int, int | None], group_id: int | None) -> set[int]:
    """Return this group and all groups around it."""
    return set() if group_id is None else ancestors(inside, [group_id])


def _gathered(children: Children, waiting: Sequence[tuple[int, str]], group_id: int | None, name: str) -> Children:
    """Put a new group around the returned nodes directly in group `group_id`, if there would be too many edges."""
    loose = {task.id for task in children.tasks if task.group_id == group_id}
    loose |= {group.id for group in children.groups if group.parent_group_id == group_id}
    inside = {node for _, node in children.returned if node in loose}
    if len(inside) * len(waiting) <= EDGES_MAX:
        return children
    around = NewGroup(new_id(), f"{name[:180]} (returned)", group_id, None)
    return replace(
        children,
        tasks=[task._replace(group_id=around.id) if task.id in inside else task for task in children.tasks],
        groups=[
            around,
            *(group._replace(parent_group_id=around.id) if group.id in inside else group for group in children.groups),
        ],
        returned=[("group", around.id), *(pair for pair in children.returned if pair[1] not in inside)],
    )


def _edges(
    submission: Submission,
    returned: Sequence[tuple[str, int]],
    waiting: Sequence[tuple[int, str]],
    inside: Mapping[int, int | None],
) -> list[Edge]:
    """Return the edges from each returned node to each waiting one, except to groups that contain it."""
    nodes: dict[int, Node] = {node.id: node for node in (*submission.tasks, *submission.groups)}
    ends = {node: nodes.get(node) or stored_node(kind, node) for node, kind in waiting}
    edges: list[Edge] = []
    for kind, node in returned:
        previous = nodes.get(node) or stored_node(kind, node)
        around = _chain(inside, previous._group_id)
        edges += [Edge(previous, ends[end]) for end in ends if end != node and end not in around]
    return edges
