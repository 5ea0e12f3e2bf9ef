"""What arrives in the place of an input that failed, for a body whose task runs all the same."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aaiclick.orchestration.rules.states import COMPLETE_TASK, ENDED_TASK, TaskStatus

KIND = "failed"
"""What such an input is called in the texts that come with a claim."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An input that failed, never ran or was cancelled: the type and the message of its error, and its task."""

    type: str
    message: str
    task_id: int

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


def failed_text(task_id: int, status: str, error: str | None) -> str | None:
    """What a claim is given in the place of a result that will not come; None for a task that may still give one."""
    if status not in ENDED_TASK - COMPLETE_TASK:
        return None
    said = error or ("Cancelled: the task was cancelled" if status == TaskStatus.CANCELLED else "Failed")
    kind, _, message = said.partition(": ")
    if not kind.replace(".", "").isidentifier():
        kind, message = "Failed", said
    return json.dumps({"object_type": KIND, "type": kind, "message": message, "task_id": task_id}, ensure_ascii=False)


def failed_in(texts: Iterable[str | None]) -> list[Failed]:
    """The failures among the texts that came with a claim."""
    return [read_failed(json.loads(text)) for text in texts if text is not None and text.startswith(_BEGINNING)]


_BEGINNING = f'{{"object_type": "{KIND}"'


def holds_failed(value: object) -> bool:
    """Whether a value is a failure, or a list, tuple or dict with one in it, however deep."""
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
    """The same again, where a body is given it."""
    return Failed(payload["type"], payload["message"], payload["task_id"])
