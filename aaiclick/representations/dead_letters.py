"""Dead letters: tasks that were given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import last_of
from aaiclick.representations.tasks import TaskAnswer, task_answer

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Task


class DeadLetterPage(TypedDict):
    """Tasks that failed for good, those of the newest jobs first. `next` is the `before` of the next page."""

    tasks: list[TaskAnswer]
    next: str | None


def dead_letter_page(tasks: Sequence[Task], limit: int | None) -> DeadLetterPage:
    """Return a page of dead letters."""
    last = last_of(tasks, limit)
    following = None if last is None else f"{last.job_id}-{last.id}"
    return DeadLetterPage(tasks=[task_answer(task) for task in tasks], next=following)
