"""What is made is gathered: by `apply` in memory, and by a running task in its staging."""

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
"""The context that was entered last, or the staging of the run that goes on inside of it."""

# ---------------------------------------------------------------- what a running task makes


class Staging(list[Node]):
    """The tasks and groups that a run makes: they are committed with its completion, in the same transaction."""

    def __init__(self, job_id: int, most: int, count_slots: Callable[[], Awaitable[int]] | None = None) -> None:
        super().__init__()
        self.job_id = job_id
        self.most = most
        self.context: Context | None = None
        """The context around, once the body has asked for it."""
        self._count_slots = count_slots

    async def slots(self) -> int:
        """How many of the tasks that are made here may run at a time, as far as anybody knows."""
        return 1 if self._count_slots is None else await self._count_slots()

    def append(self, node: Node) -> None:
        """One more, if it is not one too many."""
        if len(self) >= self.most:
            raise TooManyTasks(what="One task makes", limit=self.most, setting="AAICLICK_TASK_CHILDREN_MAX")
        super().append(node)

    def stage(self, nodes: Iterable[Node]) -> None:
        """Add those that were made elsewhere, with what they need; refused as a whole, as `apply` does."""
        submission = gather(self.job_id, nodes)
        check_entrypoints(submission.tasks)
        known = {node.id for node in self}
        for node in (*submission.tasks, *submission.groups):
            if node.id not in known:
                self.append(node)

    def forget(self) -> None:
        """The run failed: what it made is never stored, and a body that still has some of it cannot add it later."""
        for node in self:
            if not node.applied:
                node.job_id, node.applied = self.job_id, True
                for edge in (*node.incoming, *node.outgoing):
                    edge.applied = True


def staging_around() -> Staging | None:
    """Where the run around gathers what it makes; None outside of a running task."""
    found = collector.get()
    return found if isinstance(found, Staging) else None


class staged_in:
    """Inside, whatever is made belongs to the run, and the context around is that of its job.

    A class, since each run of a task is inside of one: a generator costs twice as much.
    """

    __slots__ = ("_around", "_gathering", "_group", "_staging")

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def __enter__(self) -> None:
        self._gathering = collector.set(self._staging)
        self._group = current_group.set(None)
        self._around = around.set(self._staging)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None:
            self._staging.forget()
        collector.reset(self._gathering)
        current_group.reset(self._group)
        around.reset(self._around)


def refuse_staged(task_id: int) -> None:
    """A running task cannot wait for what it makes: that begins when the task has completed."""
    if any(node.id == task_id for node in staging_around() or ()):
        raise NotYetThere(task_id=task_id)


# ---------------------------------------------------------------- what is submitted


def gather(job_id: int, items: Iterable[Node]) -> Submission:
    """These nodes with the unapplied ones they need: what they wait for, their groups, and those groups' members.

    An edge to something that is not applied yet waits with it.
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
