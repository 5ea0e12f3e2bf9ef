"""Encoding what runs return (values, tasks, groups, Objects), and decoding stored results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from aaiclick.config import settings
from aaiclick.errors import InputError, NotFound, ValueNotPortable
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.failed import KIND, read_failed
from aaiclick.orchestration.rules.type_variables import R
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.rules.values.encoding import decode_value, encode_value, reference_in
from aaiclick.orchestration.rules.values.reference_marks import marks_of, without_schema
from aaiclick.orchestration.rules.values.walk import BLOB_SETTING


@dataclass(slots=True)
class TaskResult(Generic[R]):
    """What a workflow or a task hands on: the data if given, else the results of the tasks."""

    data: R = None  # type: ignore[assignment]  # without data, R is not known
    tasks: Sequence[Any] = field(default_factory=list)
    """Tasks and groups; a call of a task has the type of its value."""


def encode_returned(value: object, job_id: int | None = None) -> tuple[str, list[Node]]:
    """Return the stored form of what a workflow or task returned, and the tasks and groups that it names.

    Objects and Views are stored as references, with the id of the job that made them if `job_id` is given.
    """
    named: list[Node] = []

    def mark(item: object) -> tuple[str, object] | None:
        if isinstance(item, Task | Group):
            named.append(item)
            return item.kind, item.id
        if isinstance(item, TaskResult):
            rule = "a TaskResult must be returned itself, not inside other data"
            raise ValueNotPortable(path="result", value=shorten(item), rule=rule, hint="")
        found = reference_in(item)
        return found if found is None or job_id is None else (found[0], {**found[1], "job_id": job_id})

    if isinstance(value, TaskResult):
        named += _checked(value.tasks)
        value = value.tasks if value.data is None else value.data
    text = encode_value(value, path="result", bytes_max=settings().blob_bytes_max, mark=mark, setting=BLOB_SETTING)
    return text, named


def _checked(tasks: object) -> list[Node]:
    """Return the tasks of a TaskResult as a list; raise InputError if it is no list of tasks and groups."""
    if not isinstance(tasks, list | tuple) or not all(isinstance(item, Task | Group) for item in tasks):
        hint = "Return other values as TaskResult(data=…)."
        raise InputError(
            field="TaskResult.tasks", value=shorten(tasks), rule="it must be a list of Tasks and Groups", hint=hint
        )
    return list(tasks)


@dataclass(slots=True)
class Results:
    """Stored results of tasks (`texts`), the tasks of groups (`members`), the output tasks of groups (`outputs`).

    Values are decoded when needed and cached.
    """

    texts: Mapping[int, str | None] = field(default_factory=dict)
    members: Mapping[int, list[int]] = field(default_factory=dict)
    outputs: Mapping[int, int] = field(default_factory=dict)
    opened: Callable[[str, Any], object] | None = None
    """Returns the Object, View or blob for a reference; without it, references are returned as dicts."""
    importing: bool = True
    """Whether modules of the user's types may be imported for decoding."""
    _values: dict[int, Any] = field(default_factory=dict)

    def decode(self, text: str | None) -> Any:
        """Return the value of a stored result, in which the results of tasks and groups that it names are inserted."""
        if text is None:
            return None
        self._prepare(self._named(text))
        return self._decoded(text)

    def resolve(self, kind: str, payload: Any) -> Any:
        """Return what a mark stands for: the result of a task or group, a large value, a failed input, or an Object."""
        if kind == "task":
            return self._value(payload)
        if kind == "group":
            if payload in self.outputs:
                return self._value(self.outputs[payload])
            if payload not in self.members:
                raise _gone("group", payload)
            return [self._value(task) for task in self.members[payload]]
        if kind == "blob" and self.opened is not None:
            return self._decoded(str(self.opened(kind, payload)))
        if kind == KIND:
            return read_failed(payload)
        if self.opened is not None:
            return self.opened(kind, payload)
        return {"object_type": kind, **without_schema(payload)} if isinstance(payload, dict) else payload

    def _value(self, task: int) -> Any:
        if task not in self.texts:
            raise _gone("task", task)
        if task not in self._values:
            self._prepare([task])
        return self._values[task]

    def _prepare(self, tasks: Sequence[int]) -> None:
        """Decode the results of these tasks, and before each the results that it names.

        It uses no recursion, because a chain of tasks that return tasks may be long.
        """
        left = list(tasks)
        looked: set[int] = set()
        while left:
            task = left[-1]
            text = self.texts.get(task)
            missing = [near for near in self._named(text) if near not in self._values] if task not in looked else []
            looked.add(task)
            if missing and task not in self._values:
                left += missing
                continue
            left.pop()
            if task not in self._values:
                self._values[task] = None  # a result that names itself finds None
                self._values[task] = None if text is None else self._decoded(text)

    def _decoded(self, text: str) -> Any:
        return decode_value(text, self.resolve, importing=self.importing)

    def _named(self, text: str | None) -> list[int]:
        """Return the tasks whose results a text names, directly or as members or output of a group."""
        found: list[int] = []
        for kind, payload in () if text is None else marks_of(text):
            if kind == "task" and isinstance(payload, int):
                found.append(payload)
            elif kind == "group" and isinstance(payload, int):
                found += [self.outputs[payload]] if payload in self.outputs else self.members.get(payload, ())
        return found


def _gone(kind: str, node: int) -> NotFound:
    """Make the error for a task or group that existed when the result was stored, and does not now."""
    hint = "A run of a task that was cleared since made it: the next run makes a new one."
    return NotFound(what=kind, field="id", value=node, hint=hint)
