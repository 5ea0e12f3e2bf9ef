"""Nodes: what tasks and groups have in common. An id from the start, dependencies, membership of a group."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from aaiclick.errors import CircularDependencyError, Conflict
from aaiclick.ids import new_id
from aaiclick.orchestration.models.front_door import ask
from aaiclick.orchestration.rules.triggers import When, check_when
from aaiclick.orchestration.rules.validation import check_id

if TYPE_CHECKING:
    from aaiclick.orchestration.models.group import Group
    from aaiclick.orchestration.models.job import Job

T = TypeVar("T", bound="Node | Sequence[Node]")
Several = TypeVar("Several", bound="Sequence[Node]")

current_group: ContextVar[Group | None] = ContextVar("aaiclick_current_group", default=None)
collector: ContextVar[list[Node] | None] = ContextVar("aaiclick_collector", default=None)
"""The list to which nodes made inside a `@job` function are appended; None outside of one."""

_groups_in_memory: weakref.WeakValueDictionary[int, Group] = weakref.WeakValueDictionary()


class Edge:
    """A dependency: `next` waits for `previous`."""

    __slots__ = ("applied", "next", "previous")

    def __init__(self, previous: Node, next: Node) -> None:
        self.previous = previous
        self.next = next
        self.applied = False


class Node:
    """A task or a group: a node of the graph of a job."""

    __slots__ = (
        "__weakref__",
        "_group",
        "_group_id",
        "_in",
        "_out",
        "applied",
        "id",
        "job_id",
        "name",
        "needs",
        "when",
    )
    kind: ClassVar[str]
    group_field: ClassVar[str]

    id: int
    name: str
    job_id: int | None
    when: When
    """The trigger rule: how the nodes it waits for have to end."""
    needs: str
    """What its tasks need of whoever runs them, as it was said of this node; `rules/placement` has the form."""
    _group: Group | None
    """The enclosing group, if it is in memory."""

    def _begin(self, name: str, group_id: int | None, when: str, needs: str) -> None:
        self.when, self.needs = check_when(when), needs
        self.id = new_id()
        self.name = name
        self.job_id = None
        self.applied = False
        self._in: list[Edge] | None = None
        self._out: list[Edge] | None = None
        self._group = None
        self._group_id: int | None = None
        if group_id is not None:
            self._join(group_id)
        elif (around := current_group.get()) is not None:
            self._join(around.id, around)
        if (gathered := collector.get()) is not None:
            gathered.append(self)

    def _restore(self) -> None:
        """Set the fields of an instance made without `__init__`: one read from the database or sent from elsewhere."""
        self.applied = True
        self.when = When.ALL_COMPLETED
        self.needs = ""
        self._in = self._out = None
        self._group = None

    def _join(self, group_id: int | None, group: Group | None = None) -> None:
        """Join a group, or leave it (None). A group in memory is told, so that applying it includes its members."""
        if group_id is not None:
            check_id(group_id, self.group_field)
        if self.applied and group_id != self._group_id:
            hint = "Set its group before it is applied."
            raise Conflict(what=str(self), verb="moved to another group", cause="it is stored already", hint=hint)
        if group is None and group_id is not None:
            group = _groups_in_memory.get(group_id)
        if group is not None and group is not self._group:
            group.members.append(self)
        self._group_id, self._group = group_id, group

    @property
    def group(self) -> Group | None:
        """The enclosing group; for a stored node it is read from the database when first asked for."""
        if self._group is None and self._group_id is not None and self.applied:
            around = [group for group in ask("get_groups_for_job", self.job_id) if group.id == self._group_id]
            self._group = around[0] if around else None
        return self._group

    @property
    def job(self) -> Job | None:
        """The job, read from the database at each call; None if this node is not applied yet."""
        job: Job | None = None if self.job_id is None else ask("get_job", self.job_id)
        return job

    @property
    def description(self) -> str:
        """Older name of `name`."""
        return self.name

    # ------------------------------------------------------------ dependencies

    @property
    def incoming(self) -> Sequence[Edge]:
        return self._in or ()

    @property
    def outgoing(self) -> Sequence[Edge]:
        return self._out or ()

    def depends_on(self, other: Node) -> Self:
        """Make this node wait for `other`; return self, for chaining."""
        if not isinstance(other, Node):
            raise TypeError(f"{self} can wait for a Task or a Group, not for {type(other).__name__}: {other!r:.80}")
        if other is self or other.id == self.id:
            raise CircularDependencyError(path=f"{self} → {self}")
        edge = Edge(other, self)
        if self._in is None:
            self._in = []
        if other._out is None:
            other._out = []
        self._in.append(edge)
        other._out.append(edge)
        return self

    def __rshift__(self, other: T) -> T:
        """A >> B: B waits for A."""
        for item in _items(other, self):
            item.depends_on(self)
        return other

    def __lshift__(self, other: Node | Sequence[Node]) -> Self:
        """A << B: A waits for B."""
        for item in _items(other, self):
            self.depends_on(item)
        return self

    def __rrshift__(self, other: Sequence[Node]) -> Self:
        """[A, B] >> C: C waits for A and B."""
        return self << other

    def __rlshift__(self, other: Several) -> Several:
        """[A, B] << C: A and B wait for C."""
        return self >> other

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r} {self.id}>"


def _items(other: object, around: Node) -> Sequence[Node]:
    """Return the nodes of an operand as a sequence; all are checked before the first edge is made."""
    items: Sequence[Any] = other if isinstance(other, list | tuple) else [other]
    for item in items:
        if not isinstance(item, Node):
            what = f"{type(item).__name__}: {item!r:.80}"
            raise TypeError(f"a dependency joins Tasks and Groups, or a list of them, not {what}")
        if item.id == around.id:
            raise CircularDependencyError(path=f"{item} → {item}")
    return items


def register_group(group: Group) -> None:
    """Register a group by its id while it is in memory, so that `task.group_id = group.id` finds it.

    The first one registered stays: a copy read from the database later knows none of its members.
    """
    _groups_in_memory.setdefault(group.id, group)
