"""Tasks, groups and dependencies that a run made, as plain data; they are stored together with its completion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from aaiclick.orchestration.models.group import Group
from aaiclick.orchestration.models.node import Edge, Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.models.task import Task


class NewTask(NamedTuple):
    """A new task as plain data, sent from the process that made it to the one that stores it."""

    id: int
    name: str
    group_id: int | None
    entrypoint: str
    kwargs_json: str
    needs_inputs: bool
    critical: bool
    priority: int
    timeout_s: float | None
    retry_policy: str | None
    stop_when_cut_off: bool = True
    when: str = "all_completed"
    needs: str = ""
    lane: int = 0
    """Set by whoever stores it."""
    cache_policy: str | None = None


class NewGroup(NamedTuple):
    """A new group as plain data, sent from the process that made it to the one that stores it."""

    id: int
    name: str
    parent_group_id: int | None
    output_task_id: int | None
    when: str = "all_completed"
    needs: str = ""
    lane: int = 0
    """Set by whoever stores it."""


class NewEdge(NamedTuple):
    """A new dependency: `next` waits for `previous`; either may be stored already."""

    previous_id: int
    previous_type: str
    next_id: int
    next_type: str


@dataclass(slots=True, frozen=True)
class Children:
    """All nodes that a run made, and the (kind, id) of nodes it returned, new or stored.

    Tasks that wait for the run wait for the returned nodes too.
    """

    job_id: int
    tasks: list[NewTask]
    groups: list[NewGroup]
    edges: list[NewEdge]
    returned: list[tuple[str, int]]

    @classmethod
    def of(cls, submission: Submission, returned: Iterable[Node], group_id: int | None) -> Children:
        """Convert a submission gathered in memory. Nodes in no group join `group_id`, the group of the run's task."""
        return cls(
            submission.job_id,
            tasks=[new_task(task, group_id) for task in submission.tasks],
            groups=[new_group(group, group_id) for group in submission.groups],
            edges=new_edges(submission),
            returned=list(dict.fromkeys((node.kind, node.id) for node in returned)),
        )

    def submission(self, job_id: int, parent_task_id: int, parent_epoch: int) -> Submission:
        """Return the same as tasks, groups and edges, for the store."""
        return revived(self, job_id, {}, parent_task_id, parent_epoch)


class Sent(Protocol):
    """Anything that has new tasks, groups and edges as plain data: Children, SentSubmission."""

    @property
    def tasks(self) -> list[NewTask]: ...
    @property
    def groups(self) -> list[NewGroup]: ...
    @property
    def edges(self) -> list[NewEdge]: ...


def revived(
    sent: Sent, job_id: int, names: Mapping[int, str], parent_task_id: int | None, parent_epoch: int | None
) -> Submission:
    """Return what was sent as a Submission. `names` are the names of stored nodes at the ends of edges, by id."""
    nodes: dict[int, Node] = {}
    for row in sent.groups:
        nodes[row.id] = Group.from_new(row, parent_task_id)
    for new in sent.tasks:
        nodes[new.id] = Task.from_new(new, parent_task_id, parent_epoch)

    def end(kind: str, node_id: int) -> Node:
        return nodes.get(node_id) or stored_node(kind, node_id, names.get(node_id))

    return Submission(
        job_id,
        tasks=[node for node in nodes.values() if isinstance(node, Task)],
        groups=[node for node in nodes.values() if isinstance(node, Group)],
        edges=[
            Edge(end(edge.previous_type, edge.previous_id), end(edge.next_type, edge.next_id)) for edge in sent.edges
        ],
    )


def new_group(group: Group, group_id: int | None) -> NewGroup:
    """Convert a group to plain data; if it has no parent group, it joins `group_id`."""
    around = group.parent_group_id or group_id
    return NewGroup(group.id, group.name, around, group.output_task_id, group.when, group.needs)


def new_edges(submission: Submission) -> list[NewEdge]:
    """Convert the edges of a submission to plain data."""
    return [NewEdge(edge.previous.id, edge.previous.kind, edge.next.id, edge.next.kind) for edge in submission.edges]


def new_task(task: Task, group_id: int | None) -> NewTask:
    """Convert a task to plain data; if it is in no group, it joins `group_id`."""
    return NewTask(
        task.id,
        task.name,
        group_id if task.group_id is None else task.group_id,
        task.entrypoint,
        task.kwargs_json,
        task.needs_inputs,
        task.critical,
        task.priority,
        task.timeout_s,
        task.retry.to_json(),
        task.stop_when_cut_off,
        task.when,
        task.needs,
        task.lane,
        task.cache_policy,
    )


def stored_node(kind: str, node_id: int, name: str | None = None) -> Node:
    """Make a placeholder for a stored node of which only kind, id and perhaps the name are known, for an edge."""
    node: Node = Task.__new__(Task) if kind == "task" else Group.__new__(Group)
    node._restore()
    node.id, node.name, node.job_id, node._group_id = node_id, name or str(node_id), None, None
    return node
