"""What arrives in the place of an input that failed, for a body whose task runs all the same."""

from __future__ import annotations

import json
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


def read_failed(payload: dict[str, Any]) -> Failed:
    """The same again, where a body is given it."""
    return Failed(payload["type"], payload["message"], payload["task_id"])
