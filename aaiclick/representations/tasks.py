"""Tasks, the attempts at them, and which of them run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from aaiclick.orchestration.rules.values.shown_values import show_stored_arguments
from aaiclick.representations.expectations import UnmetAnswer, unmet_answers
from aaiclick.representations.fields import Id, Time, facts_of

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Run, Task
    from aaiclick.orchestration.queries.expectations import Unmet


class TaskAnswer(TypedDict):
    """A task: one unit of work of a job."""

    id: Id
    job_id: Id
    group_id: Id | None
    name: str
    entrypoint: str
    status: str
    epoch: int
    attempt: int
    crash_count: int
    lost_count: int
    max_retries: int
    generation: int
    priority: int
    critical: bool
    stop_when_cut_off: bool
    when: str
    timeout_s: float | None
    worker_id: Id | None
    created_at: Time | None
    claimed_at: Time | None
    started_at: Time | None
    completed_at: Time | None
    run_after: Time | None
    error: str | None


class TaskDetail(TaskAnswer):
    """A task, with its arguments, and where its last attempt failed that left a traceback.

    `expectations`: what it expected of its data and did not find.
    """

    arguments: dict[str, Any]
    traceback: str | None
    expectations: list[UnmetAnswer]


class RunAnswer(TypedDict):
    """An attempt at a task that ended."""

    task_id: Id
    epoch: int
    attempt: int
    worker_id: Id | None
    claimed_at: Time | None
    started_at: Time | None
    ended_at: Time
    outcome: str
    error: str | None
    traceback: str | None


class RunList(TypedDict):
    """The attempts at a task that ended, the oldest first."""

    runs: list[RunAnswer]


class Cleared(TypedDict):
    """The tasks that will run again, or would (`dry_run`); those that were asked for come first."""

    task_ids: list[Id]
    dry_run: bool


def task_answer(task: Task) -> TaskAnswer:
    """Return a task as JSON data."""
    return facts_of(TaskAnswer, task)


def task_detail(task: Task, traceback: str | None, unmet: Sequence[Unmet]) -> TaskDetail:
    """Return a task with its arguments and failures."""
    arguments = show_stored_arguments(task.kwargs_json)
    return facts_of(TaskDetail, task, arguments=arguments, traceback=traceback, expectations=unmet_answers(unmet))


def only_here(task: Task) -> dict[str, Any]:
    """Return what only commands show of a task: they run for whoever may read the database and the logs."""
    return {"arguments": show_stored_arguments(task.kwargs_json), "log_path": task.log_path}


def run_list(runs: Sequence[Run]) -> RunList:
    """Return the attempts at a task."""
    return RunList(runs=[facts_of(RunAnswer, run) for run in runs])


def cleared(task_ids: Sequence[int], dry_run: bool = False) -> Cleared:
    """Return which tasks run again, or would."""
    return Cleared(task_ids=[str(each) for each in task_ids], dry_run=dry_run)
