"""Tasks, the attempts at them, and which of them run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict

from aaiclick.orchestration.rules.values.shown_values import show_stored_arguments
from aaiclick.representations.expectations import UnmetAnswer, unmet_answers
from aaiclick.representations.fields import Form, Id, Time, facts_of, id_text

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Run, Task
    from aaiclick.orchestration.queries.expectations import Unmet
    from aaiclick.orchestration.store.reading.task_list import Found


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
    lane: int
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
    idempotency_key: str
    cache_outcome: Annotated[str | None, Form(description="`hit`, `miss` or `refresh` of a task that is cached.")]
    cached_from_id: Annotated[Id | None, Form(description="The task whose run made the result, after a hit.")]


class TaskPage(TypedDict):
    """Tasks of all jobs. `next` is the `before` of the page after this; null on the last one.

    A page looks through a bounded number of tasks: it may have fewer than were asked for, and yet a next one.
    """

    tasks: list[TaskAnswer]
    next: Id | None


class TaskDetail(TaskAnswer):
    """A task, with its arguments, and the traceback of its last attempt that left one.

    `expectations`: data expectations that were not met.
    """

    arguments: dict[str, Any]
    traceback: str | None
    expectations: list[UnmetAnswer]


class RunAnswer(TypedDict):
    """An ended attempt at a task."""

    task_id: Id
    epoch: int
    attempt: int
    generation: int
    worker_id: Id | None
    claimed_at: Time | None
    started_at: Time | None
    ended_at: Time
    outcome: str
    error: str | None
    traceback: str | None


class RunList(TypedDict):
    """The ended attempts of a task, oldest first."""

    runs: list[RunAnswer]


class Cleared(TypedDict):
    """The tasks that will run again, or would (`dry_run`); the requested tasks come first."""

    task_ids: list[Id]
    dry_run: bool


def task_answer(task: Task) -> TaskAnswer:
    """Return a task as JSON data."""
    return facts_of(TaskAnswer, task)


def task_page(found: Found) -> TaskPage:
    """Return a page of tasks."""
    return TaskPage(tasks=[task_answer(task) for task in found.tasks], next=id_text(found.next))


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
