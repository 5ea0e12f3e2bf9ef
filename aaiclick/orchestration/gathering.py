"""Gathering new nodes for a submission: those given to `apply`, and those that a running task makes (its staging)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING

from aaiclick.errors import CrossJobDependency, NotYetThere, TooManyTasks
from aaiclick.orchestration.checks import check_entrypoints
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.node import Edge, Node, collector, current_group
from aaiclick.orchestration.models.submission import Submission

if TYPE_CHECKING:
    from aaiclick.orchestration.context import Context

around: ContextVar[Context | Staging | None] = ContextVar("aaiclick_context", default=None)
"""The context that was entered last, or the staging of the current run if that began later."""

# ---------------------------------------------------------------- what a running task makes


class Staging(list[Node]):
    """The list of tasks and groups that a run makes. They are committed in the same transaction as its completion."""

    def __init__(self, job_id: int, most: int, count_slots: Callable[[], Awaitable[int]] | None = None) -> None:
        super().__init__()
        self.job_id = job_id
        self.most = most
        self.context: Context | None = None
        """The context of the run's job, made when the body first asks for it."""
        self._count_slots = count_slots

    async def slots(self) -> int:
        """Return how many of the new tasks can run at a time, by what is known now; 1 if nothing is known."""
        return 1 if self._count_slots is None else await self._count_slots()

    def append(self, node: Node) -> None:
        """Add a node; raise TooManyTasks beyond `most`."""
        if len(self) >= self.most:
            raise TooManyTasks(what="One task makes", limit=self.most, setting="AAICLICK_TASK_CHILDREN_MAX")
        super().append(node)

    def stage(self, nodes: Iterable[Node]) -> None:
        """Check nodes as `apply` does, and add them with the unapplied nodes they need."""
        submission = gather(self.job_id, nodes)
        check_entrypoints(submission.tasks)
        known = {node.id for node in self}
        for node in (*submission.tasks, *submission.groups):
            if node.id not in known:
                self.append(node)

    def forget(self) -> None:
        """Mark the nodes and edges as applied after the run has failed: they are never stored.

        A body that still holds some of them cannot submit them later.
        """
        for node in self:
            if not node.applied:
                node.job_id, node.applied = self.job_id, True
                for edge in (*node.incoming, *node.outgoing):
                    edge.applied = True


def staging_around() -> Staging | None:
    """Return the staging of the current run; None outside of a running task."""
    found = collector.get()
    return found if isinstance(found, Staging) else None


class staged_in:
    """A `with` block in which new nodes are added to the staging of a run, and the current context is that of its job.

    It is a class because every run of a task uses it, and a generator costs twice as much.
    """

    __slots__ = ("_around", "_gathering", "_group", "_staging")

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def __enter__(self) -> None:
        self._gathering = collector.set(self._staging)
        self._group = None if current_group.get() is None else current_group.set(None)
        self._around = around.set(self._staging)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._staging.forget()
        collector.reset(self._gathering)
        if self._group is not None:
            current_group.reset(self._group)
        around.reset(self._around)


def refuse_staged(task_id: int) -> None:
    """Raise NotYetThere if the current run has made this task: it is stored when the run completes, not before."""
    if any(node.id == task_id for node in staging_around() or ()):
        raise NotYetThere(task_id=task_id)


# ---------------------------------------------------------------- what is submitted


def gather(job_id: int, items: Iterable[Node]) -> Submission:
    """Return a submission of these nodes and the unapplied ones they need.

    These are the nodes they wait for, their groups, and the members of those groups. An edge to a node that is neither
    stored nor part of the submission is left for later. Raise CrossJobDependency for nodes of another job.
    """
    found: dict[int, Node] = {}
    edges: dict[int, Edge] = {}
    left = list(items)
    seen: set[int] = set()
    while left:
        node = left.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        _refuse_other_job(node, job_id)
        if not node.applied:
            found[node.id] = node
        left += [near for near in _needed(node) if not near.applied]
        for edge in (*node.incoming, *node.outgoing):
            if not edge.applied:
                edges[id(edge)] = edge
        left += [edge.previous for edge in node.incoming if not edge.applied and not edge.previous.applied]
    order = sorted(found)
    return Submission(
        job_id,
        tasks=[node for key in order if isinstance(node := found[key], Task)],
        groups=[node for key in order if isinstance(node := found[key], Group)],
        edges=[edge for edge in edges.values() if _is_due(edge, found, job_id)],
    )


def _needed(node: Node) -> list[Node]:
    near: list[Node] = []
    if node._group is not None:
        near.append(node._group)
    if isinstance(node, Group):
        near += [member for member in node.members if member._group_id == node.id]
    return near


def _is_due(edge: Edge, found: dict[int, Node], job_id: int) -> bool:
    for end in (edge.previous, edge.next):
        if end.applied:
            _refuse_other_job(end, job_id)
    return all(end.applied or end.id in found for end in (edge.previous, edge.next))


def _refuse_other_job(node: Node, job_id: int) -> None:
    if node.job_id is not None and node.job_id != job_id:
        raise CrossJobDependency(what=str(node), other_job_id=node.job_id, job_id=job_id)
