"""Groups: named sets of tasks and other groups."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, cast

from aaiclick.errors import CircularDependencyError, Conflict
from aaiclick.orchestration.models.front_door import ask, front_door
from aaiclick.orchestration.models.node import Node, current_group, register_group
from aaiclick.orchestration.rules.placement import Placement, needs_of
from aaiclick.orchestration.rules.resources import Resources
from aaiclick.orchestration.rules.triggers import Trigger, When
from aaiclick.orchestration.rules.type_variables import AnyValue
from aaiclick.orchestration.rules.validation import check_name

if TYPE_CHECKING:
    from aaiclick.orchestration.models.children import NewGroup
    from aaiclick.orchestration.models.task import Task

_READ = (
    "depth",
    "unmet_count",
    "open_count",
    "failed_count",
    "dependents_count",
    "created_at",
    "output_task_id",
    "parent_task_id",
    "unended_count",
    "awaited_count",
    "amiss",
    "lane",
)

_left: ContextVar[tuple[Group | None, ...]] = ContextVar("aaiclick_left_groups", default=())
"""The stack of groups to restore when `with` blocks end; each coroutine has its own."""


class Group(Node, AnyValue):
    """A named set of tasks and groups, nestable; complete when every task inside, at any depth, is completed.

    `with Group("load"):` puts what is made inside the block into the group.
    """

    __slots__ = (
        "_read",
        "amiss",
        "awaited_count",
        "created_at",
        "depth",
        "dependents_count",
        "failed_count",
        "lane",
        "members",
        "open_count",
        "output_task_id",
        "parent_task_id",
        "unended_count",
        "unmet_count",
    )
    kind: ClassVar[str] = "group"
    group_field: ClassVar[str] = "parent_group_id"

    def __init__(
        self,
        name: str,
        *,
        parent_group_id: int | None = None,
        when: Trigger = When.ALL_COMPLETED,
        placement: Placement | None = None,
        resources: Resources | None = None,
    ) -> None:
        """Make a group in memory. `placement` is where the tasks in it may run, `resources` what each of them needs.

        The tasks may say more.
        """
        self.members: list[Node] = []
        self._read = False
        self._fresh()
        self.created_at: datetime | None = None
        self.output_task_id: int | None = None
        self.parent_task_id: int | None = None
        self._begin(check_name(name, "Group name"), parent_group_id, when, needs_of(placement, resources))
        register_group(self)

    def _fresh(self) -> None:
        """Set the counters of a group that has not been stored."""
        self.depth = self.unmet_count = self.open_count = self.failed_count = self.dependents_count = 0
        self.unended_count = self.awaited_count = self.lane = 0
        self.amiss = False

    @classmethod
    def from_row(cls, row: Any) -> Group:
        """Make a group from a row of the `groups` table."""
        group = cls.__new__(cls)
        group._restore()
        group.members = []
        group._read = True
        group.id, group.name, group.job_id = row.id, row.name, row.job_id
        group._group_id = row.parent_group_id
        for name in _READ:
            setattr(group, name, getattr(row, name))
        group.when = When(row.trigger_rule)
        register_group(group)
        return group

    @classmethod
    def from_new(cls, new: NewGroup, parent_task_id: int | None) -> Group:
        """Make a group from plain data sent by a run or a client, to be stored."""
        group = cls.__new__(cls)
        group._restore()
        group.applied = group._read = False
        group.members = []
        group._fresh()
        group.created_at = None
        group.id, group.name, group.job_id, group._group_id = new.id, new.name, None, new.parent_group_id
        group.output_task_id, group.parent_task_id = new.output_task_id, parent_task_id
        group.when, group.needs, group.lane = When(new.when), new.needs, new.lane
        return group

    @property
    def output(self) -> Task | None:
        """The task whose result stands for the group where it is an argument.

        None: a list of the results of all its tasks stands for it.
        """
        if self.output_task_id is None:
            return None
        known = [node for node in self.members if node.id == self.output_task_id]
        found: Any = known[0] if known else ask("get_task", self.output_task_id)
        return cast("Task | None", found)

    @output.setter
    def output(self, task: Any) -> None:
        if self.applied:
            hint = "Set its output before it is applied."
            raise Conflict(what=str(self), verb="given an output", cause="it is stored already", hint=hint)
        self.output_task_id = task.id

    @property
    def parent_group_id(self) -> int | None:
        return self._group_id

    @parent_group_id.setter
    def parent_group_id(self, group_id: int | None) -> None:
        if group_id == self.id:
            raise CircularDependencyError(path=f"{self} → {self}")
        self._join(group_id)

    @property
    def parent_group(self) -> Group | None:
        return self.group

    @property
    def is_complete(self) -> bool:
        """Whether nothing inside was left to complete when this group was read."""
        return self.open_count == 0

    @property
    def tasks(self) -> list[Task]:
        """The tasks directly inside. For a group read from the database: the stored ones, and new ones not applied."""
        return self._inside("task", "load_group_tasks")

    @property
    def child_groups(self) -> list[Group]:
        """The groups directly inside. For a group read from the database: the stored ones, and new ones not applied."""
        return self._inside("group", "load_child_groups")

    def _inside(self, kind: str, load: str) -> list[Any]:
        """Return the direct members of one kind, each once, even if it left the group and joined it again."""
        known = dict.fromkeys(node for node in self.members if node.kind == kind and node._group_id == self.id)
        if self.applied and (self._read or not self.members):
            return [*front_door(load)(self.id), *(node for node in known if not node.applied)]
        return list(known)

    def __enter__(self) -> Group:
        _left.set((*_left.get(), current_group.get()))
        current_group.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        *left, around = _left.get() or (None,)
        _left.set(tuple(left))
        current_group.set(around)
