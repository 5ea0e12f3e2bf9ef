"""What a run returns beside plain values, and how results are read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aaiclick.config import settings
from aaiclick.errors import InputError
from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.names import shorten
from aaiclick.orchestration.rules.values import decode_value, encode_value, reference_in


@dataclass(slots=True)
class TaskResult:
    """What a workflow or a task hands on: the data if given, else the results of the tasks."""

    data: Any = None
    tasks: list[Task | Group] = field(default_factory=list)


def encode_returned(value: object) -> tuple[str, list[Node]]:
    """What a workflow returned, in its stored form, and the tasks and groups that it names."""
    named: list[Node] = []

    def mark(item: object) -> tuple[str, object] | None:
        if isinstance(item, Task | Group):
            named.append(item)
            return item.kind, item.id
        return reference_in(item)

    if isinstance(value, TaskResult):
        named += _checked(value.tasks)
        value = value.tasks if value.data is None else value.data
    text = encode_value(value, path="result", bytes_max=settings().value_bytes_max, mark=mark)
    return text, named


def _checked(tasks: object) -> list[Node]:
    """The tasks of a TaskResult, if that is what they are."""
    if not isinstance(tasks, list | tuple) or not all(isinstance(item, Task | Group) for item in tasks):
        hint = "Hand on anything else as TaskResult(data=…)."
        raise InputError(field="TaskResult.tasks", value=shorten(tasks), rule="a list of Tasks and Groups", hint=hint)
    return list(tasks)


def decode_result(
    text: str | None,
    results: Mapping[int, str | None],
    members: Mapping[int, list[int]],
    opened: Callable[[str, Any], object] | None = None,
) -> Any:
    """The value of a stored result, with the results of the tasks and groups that it names.

    References to Objects and Views stay what they are, unless `opened` gives the Objects.
    """

    def resolve(kind: str, payload: object) -> object:
        if kind == "task" and isinstance(payload, int):
            return decode_result(results.get(payload), results, members, opened)
        if kind == "group" and isinstance(payload, int):
            return [decode_result(results.get(task), results, members, opened) for task in members.get(payload, ())]
        if opened is not None:
            return opened(kind, payload)
        return {"object_type": kind, **payload} if isinstance(payload, dict) else payload

    return None if text is None else decode_value(text, resolve)
