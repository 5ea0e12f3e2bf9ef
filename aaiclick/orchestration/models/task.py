"""Tasks: units of work, with the function to call, its arguments, and their progress."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from aaiclick.config import settings
from aaiclick.errors import InputError
from aaiclick.orchestration.models.group import Group
from aaiclick.orchestration.models.lease_fields import LeaseFields
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.cache_policies import CacheOption, Key, Remembering, cache_of
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.naming.executor_names import executor_of, last_name
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import carried, named
from aaiclick.orchestration.rules.placement import Placement, needs_of
from aaiclick.orchestration.rules.resources import Resources
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.triggers import Trigger, When
from aaiclick.orchestration.rules.type_variables import Given
from aaiclick.orchestration.rules.validation import check_name, check_seconds, is_storable, shorten
from aaiclick.orchestration.rules.values.encoding import encode_kwargs, reference_in
from aaiclick.orchestration.rules.values.walk import BLOB_SETTING

if TYPE_CHECKING:
    from aaiclick.orchestration.models.children import NewTask

_STORED = (
    "result_json",
    "error",
    "log_path",
    "worker_id",
    "run_after",
    "created_at",
    "claimed_at",
    "started_at",
    "completed_at",
    "parent_task_id",
    "parent_epoch",
    "cause_id",
    "cache_outcome",
    "cached_from_id",
)
_COUNTED = (
    "epoch",
    "attempt",
    "crash_count",
    "lost_count",
    "unmet_count",
    "dependents_count",
    "generation",
    "awaited_count",
)
ENTRYPOINT_LENGTH_MAX = 500
RETRY_POLICY_LENGTH_MAX = 2000
_GIVEN = (
    *("entrypoint", "kwargs_json", "needs_inputs", "critical", "priority", "reserved_for", "lane", "timeout_s"),
    *("stop_when_cut_off", "cache_policy"),
)
_QUEUED = ("priority", "reserved_for", "lane")
"""The fields that determine a ready task's place in the queue."""
_FRESH = tuple((field, None) for field in _STORED) + tuple((field, 0) for field in _COUNTED)


class Task(LeaseFields, Node, Generic[Given]):
    """One unit of work. It has an id from the start, and is stored by `apply` or together with its job."""

    __slots__ = (*_STORED, *_COUNTED, *_GIVEN, "_data", "_key", "amiss", "gated", "function", "kept", "retry", "status")
    kind: ClassVar[str] = "task"
    group_field: ClassVar[str] = "group_id"

    result_json: str | None
    error: str | None
    log_path: str | None
    worker_id: int | None
    run_after: datetime | None
    created_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    parent_task_id: int | None
    parent_epoch: int | None
    cause_id: int | None
    cache_outcome: str | None
    cached_from_id: int | None
    epoch: int
    attempt: int
    crash_count: int
    lost_count: int
    unmet_count: int
    dependents_count: int
    generation: int
    awaited_count: int

    def __init__(
        self,
        entrypoint: str,
        kwargs: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        group_id: int | None = None,
        max_retries: int | None = None,
        retry: RetryPolicy | None = None,
        timeout_s: float | None = None,
        priority: int = 0,
        critical: bool = True,
        stop_when_cut_off: bool = True,
        when: Trigger = When.ALL_COMPLETED,
        placement: Placement | None = None,
        resources: Resources | None = None,
        references: bool = True,
        chosen: bool = False,
        cache: CacheOption = None,
        idempotency_key: Key | None = None,
    ) -> None:
        """Make a task in memory; it joins the group and the collector of the surrounding block.

        `chosen`: the caller passed the function itself. Otherwise the entrypoint is a text, which is checked as
        untrusted in a job that came from outside.
        """
        upstream: list[Node] = []
        self._data: list[object] = []  # keeps the Objects alive: only their names are stored
        self.entrypoint = _importable(carried(entrypoint) if chosen else named(entrypoint, _prefixes()))
        mark = _marker(upstream, self._data)
        self.kwargs_json = encode_kwargs(
            kwargs or {},
            bytes_max=settings().blob_bytes_max,
            mark=mark,
            references=references,
            setting=BLOB_SETTING,
        )
        self.needs_inputs = bool(upstream)
        self.critical, self.priority = _flag(critical, "critical"), _whole(priority)
        self.reserved_for, self.lane = 0, PLAIN
        self.stop_when_cut_off = _flag(stop_when_cut_off, "stop_when_cut_off")
        self.cache_policy = _remembering(cache, idempotency_key)
        self.timeout_s = _seconds(timeout_s)
        self.retry = _policy(retry, max_retries)
        self._fresh()
        needs = needs_of(placement, resources)
        self._begin(check_name(name or last_name(entrypoint), "Task name"), group_id, when, needs)
        for node in upstream:
            self.depends_on(node)

    def _fresh(self) -> None:
        """Set the fields of a task that has not been stored."""
        self.function: Any = None
        self._key: str | None = None
        self.status = TaskStatus.PENDING
        self.gated = self.kept = self.amiss = False
        for field, value in _FRESH:
            setattr(self, field, value)

    @classmethod
    def from_new(cls, new: NewTask, parent_task_id: int | None, parent_epoch: int | None) -> Task:
        """Make a task from plain data sent by a run or a client, to be stored."""
        task = cls.__new__(cls)
        task._restore()
        task._fresh()
        task.applied = False
        task.id, task.name, task.job_id, task._group_id = new.id, new.name, None, new.group_id
        task.entrypoint, task.kwargs_json, task.needs_inputs = new.entrypoint, new.kwargs_json, new.needs_inputs
        task.critical, task.priority, task.timeout_s = new.critical, new.priority, new.timeout_s
        task.reserved_for, task.lane, task.needs = 0, new.lane, new.needs
        task.retry = RetryPolicy.from_json(new.retry_policy)
        task.stop_when_cut_off, task.cache_policy = new.stop_when_cut_off, new.cache_policy
        task.when = When(new.when)
        task.parent_task_id, task.parent_epoch = parent_task_id, parent_epoch
        return task

    @classmethod
    def from_row(cls, row: Any) -> Task:
        """Make a task from a row of the `tasks` table."""
        task = cls.__new__(cls)
        task._restore()
        for field in (*_STORED[1:], *_COUNTED, "entrypoint", "needs_inputs", "critical", *_QUEUED):
            setattr(task, field, getattr(row, field))
        task.id, task.name, task.job_id, task._group_id = row.id, row.name, row.job_id, row.group_id
        task.kwargs_json, task.result_json, task.timeout_s = row.kwargs, row.result, row.timeout_s
        task.status, task.gated, task.function = TaskStatus(row.status), row.gated, None
        task.kept, task.amiss, task.stop_when_cut_off = row.kept, row.amiss, row.stop_when_cut_off
        task.cache_policy, task._key = row.cache_policy, row.idempotency_key
        task.when = When(row.trigger_rule)
        task.retry = RetryPolicy.from_json(row.retry_policy)
        return task

    @property
    def group_id(self) -> int | None:
        return self._group_id

    @group_id.setter
    def group_id(self, group_id: int | None) -> None:
        self._join(group_id)

    @property
    def executor(self) -> str:
        """What runs the body: `python` calls a function; `shell`, `rest` and plug-ins do what the arguments say."""
        return executor_of(self.entrypoint)

    @property
    def max_retries(self) -> int:
        return self.retry.max_retries

    @property
    def idempotency_key(self) -> str:
        """The key of its runs: the same for every attempt, until the task is cleared, or for ever if it has its own."""
        return self._key or f"{self.id}-{self.generation}"

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments in their stored form; the `object_type` of each tells its kind: pyobj, object or view."""
        stored: dict[str, Any] = json.loads(self.kwargs_json)
        return stored

    @property
    def result(self) -> Any:
        """The result in its stored form, or None; `get_task_result` returns the value."""
        return None if self.result_json is None else json.loads(self.result_json)

    # ------------------------------------------------------------ older names

    @property
    def result_table_id(self) -> str | None:
        """The table of a result that is an Object."""
        stored = self.result
        return stored.get("table") if isinstance(stored, dict) else None

    @property
    def error_message(self) -> str | None:
        return self.error

    @property
    def retry_count(self) -> int:
        return self.attempt

    @property
    def run_epoch(self) -> int:
        return self.epoch


def _marker(upstream: list[Node], data: list[object]) -> Any:
    """Return the `mark` function for encoding arguments: it turns tasks, groups, Objects and Views into references.

    Tasks and groups are added to `upstream`, Objects and Views to `data`.
    """

    def mark(value: object) -> tuple[str, object] | None:
        if isinstance(value, Task | Group):
            upstream.append(value)
            return value.kind, value.id
        found = reference_in(value)
        if found is not None:
            data.append(value)
        return found

    return mark


def _prefixes() -> tuple[str, ...]:
    return settings().entrypoint_prefixes


def _importable(entrypoint: str) -> str:
    if type(entrypoint) is str and 1 <= len(entrypoint) <= ENTRYPOINT_LENGTH_MAX and is_storable(entrypoint):
        return entrypoint
    rule = f"it must be the importable name of a function, of at most {ENTRYPOINT_LENGTH_MAX} characters"
    raise InputError(field="entrypoint", value=shorten(entrypoint), rule=rule, hint='Write "module.function".')


def _policy(retry: RetryPolicy | None, max_retries: int | None) -> RetryPolicy:
    if retry is None:
        return RetryPolicy(max_retries=settings().retries_max if max_retries is None else max_retries)
    if len(retry.to_json() or "") > RETRY_POLICY_LENGTH_MAX:
        rule = f"it must have at most {RETRY_POLICY_LENGTH_MAX} characters as JSON"
        raise InputError(field="retry", value=shorten(retry), rule=rule, hint="Name fewer errors.")
    return retry if max_retries is None else replace(retry, max_retries=max_retries)


def _remembering(cache: CacheOption, idempotency_key: Key | None) -> str | None:
    """Return the options as they are stored; None if none are given, so that those of the function count."""
    if cache is None and idempotency_key is None:
        return None
    return Remembering(cache_of(cache), idempotency_key).to_json()


def _flag(value: bool, field: str) -> bool:
    if type(value) is not bool:
        raise InputError(field=field, value=shorten(value), rule="it must be True or False", hint="")
    return value


def _whole(priority: int) -> int:
    if type(priority) is not int or not -(2**31) < priority < 2**31:
        raise InputError(
            field="priority", value=shorten(priority), rule="it must be a whole number of 32 bits", hint=""
        )
    return priority


def _seconds(timeout_s: float | None) -> float | None:
    hint = "Leave it out for the default limit."
    return None if timeout_s is None else check_seconds(timeout_s, "timeout_s", hint)
