"""A run that made tasks: they appear with its completion, in one fenced transaction, or not at all.

Whoever waits for the run's task waits for what it returned as well: each gets an edge from it, or from one group around
it where there would be too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, select

from aaiclick.errors import ClaimLost
from aaiclick.ids import new_id
from aaiclick.orchestration.models import Done, Receipt
from aaiclick.orchestration.models.children import Children, NewGroup, stored_node
from aaiclick.orchestration.models.node import Edge, Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graph import ancestors
from aaiclick.orchestration.rules.states import LIVE_TASK
from aaiclick.orchestration.store.endings import lock_graph
from aaiclick.orchestration.store.extensions import Extension
from aaiclick.orchestration.store.graphs import keep_results, shape_of
from aaiclick.orchestration.store.ripples import settle
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.table_refs import settle_tables
from aaiclick.orchestration.store.tables import dependencies, groups, tasks

EDGES_MAX = 200
"""More edges than this from what was returned to those who wait are led through one group."""


async def complete_with_children(session: Session, worker_id: int, done: Done) -> Receipt:
    """Complete a run that made tasks, with all of them; raises ClaimLost if it is not its task's any more."""
    assert done.children is not None
    facts = (tasks.c.job_id, tasks.c.group_id, tasks.c.name, tasks.c.kept)
    parent = await session.first(select(*facts).where(tasks.c.id == done.task_id))
    if parent is None or not await lock_graph(session, parent.job_id):
        raise ClaimLost(task_id=done.task_id, epoch=done.epoch, move="complete")
    waiting = await _waiting_for(session, [done.task_id, *await _around(session, parent, done.children)])
    children = _gathered(done.children, waiting, parent.group_id, parent.name)
    submission = children.submission(parent.job_id, done.task_id, done.epoch)
    submission.edges += _edges(submission, children.returned, waiting)
    if parent.kept:
        keep_results(submission, children.returned)
    growth = _Growth(session, submission, shape_of(submission), grown_by=done.task_id)
    await growth.lock()
    row = growth.old_tasks.get(done.task_id)
    if row is None or (row.epoch, row.worker_id) != (done.epoch, worker_id) or row.status not in LIVE_TASK:
        raise ClaimLost(task_id=done.task_id, epoch=done.epoch, move="complete")
    await growth.look()
    await growth.write()
    ended = await session.dialect.complete_claims(session, worker_id, [done])
    assert ended, "a row that is locked and live completes"
    if done.holds:
        await settle_tables(session, [done], [(done.task_id, done.epoch)])
    more = Counter(total_tasks=len(submission.tasks), open_tasks=len(submission.tasks))
    rippling = await settle(session, ended, more={parent.job_id: more})
    return Receipt({(done.task_id, done.epoch)}, rippling)


class _Growth(Extension):
    """An extension of the job by one of its own runs; the job's row is counted with the completion."""

    __slots__ = ()

    async def count_in_job(self, count: int) -> None:
        """Left to `settle`, which locks the job last."""

    def may_close_a_cycle(self) -> bool:
        """Not where nothing new waits for what is stored: those who wait for the run cannot be waited for by it.

        Nor where what is new is in the run's own groups.
        """
        assert self.grown_by is not None
        around = ancestors(self.parents, {group for group in [self.old_tasks[self.grown_by].group_id] if group})
        waits = any(not self._is_new(edge.previous.id) for edge in self.submission.edges)
        return waits or not self.joined <= around


async def _waiting_for(session: Session, nodes: Sequence[int]) -> list[tuple[int, str]]:
    rows = await session.rows(
        select(dependencies.c.next_id, dependencies.c.next_type)
        .where(session.any_of(dependencies.c.previous_id, nodes))
        .distinct()
    )
    return [(row.next_id, row.next_type) for row in rows]


async def _around(session: Session, parent: Row[Any], children: Children) -> list[int]:
    """The groups around the run's task, if something was returned that is not inside of them.

    Whoever waits for such a group would not wait for that.
    """
    if parent.group_id is None:
        return []
    made = {task.id: task.group_id for task in children.tasks}
    made |= {group.id: group.parent_group_id for group in children.groups}
    inside = {parent.group_id, *(group.id for group in children.groups)}
    if all(made.get(node) in inside for _, node in children.returned):
        return []
    rows = await session.rows(select(groups.c.id, groups.c.parent_group_id).where(groups.c.job_id == parent.job_id))
    return sorted(ancestors({row.id: row.parent_group_id for row in rows}, [parent.group_id]))


def _gathered(children: Children, waiting: Sequence[tuple[int, str]], group_id: int | None, name: str) -> Children:
    """With a group around those that were returned and are in no group of their own, if there are many."""
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
    submission: Submission, returned: Sequence[tuple[str, int]], waiting: Sequence[tuple[int, str]]
) -> list[Edge]:
    """From all that was returned to all who wait."""
    nodes: dict[int, Node] = {node.id: node for node in (*submission.tasks, *submission.groups)}
    stored = {node: stored_node(kind, node) for node, kind in waiting}
    return [
        Edge(nodes.get(previous) or stored_node(kind, previous), stored[following])
        for kind, previous in returned
        for following, _ in waiting
        if following not in (previous, None if previous not in nodes else nodes[previous]._group_id)
    ]
