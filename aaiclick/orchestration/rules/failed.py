"""`Failed`: the value that a task's body gets in the place of an input that failed, if its trigger lets it run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aaiclick.orchestration.rules.states import COMPLETE_TASK, ENDED_TASK, TaskStatus

KIND = "failed"
"""The `object_type` of such an input in the JSON results that come with a claim."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An input whose task failed, never ran or was cancelled: its error's type and message, and the task's id."""

    type: str
    message: str
    task_id: int

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


def failed_text(task_id: int, status: str, error: str | None) -> str | None:
    """Return the JSON that a claim gets in the place of a missing result; None if the task may still complete."""
    if status not in ENDED_TASK - COMPLETE_TASK:
        return None
    said = error or ("Cancelled: the task was cancelled" if status == TaskStatus.CANCELLED else "Failed")
    kind, _, message = said.partition(": ")
    if not kind.replace(".", "").isidentifier():
        kind, message = "Failed", said
    return json.dumps({"object_type": KIND, "type": kind, "message": message, "task_id": task_id}, ensure_ascii=False)


def failed_in(texts: Iterable[str | None]) -> list[Failed]:
    """Return the failures among the JSON results that came with a claim."""
    return [read_failed(json.loads(text)) for text in texts if text is not None and text.startswith(_BEGINNING)]


_BEGINNING = f'{{"object_type": "{KIND}"'


def holds_failed(value: object) -> bool:
    """Return whether a value is a `Failed`, or a list, tuple or dict that contains one at any depth."""
    left: list[Any] = [value]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if isinstance(each, Failed):
            return True
        if isinstance(each, list | tuple | dict) and id(each) not in seen:
            seen.add(id(each))
            left += each.values() if isinstance(each, dict) else each
    return False


def read_failed(payload: dict[str, Any]) -> Failed:
    """Return the `Failed` of a payload that `failed_text` wrote."""
    return Failed(payload["type"], payload["message"], payload["task_id"])
