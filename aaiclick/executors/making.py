"""Tasks of executors, made like those of functions marked `@task`."""

from __future__ import annotations

from typing import Any

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.rules.naming.executor_names import with_executor
from aaiclick.orchestration.rules.options import TaskOptions

_OF_TASKS = frozenset(TaskOptions.__annotations__) - {"executor"}


def executor_task(executor: str, label: str, given: dict[str, Any]) -> Any:
    """Return a task of an executor. `given` are its arguments, and options of tasks such as `max_retries`.

    Typed as Any: like the call of a `@task`, it stands for the value that the task will have.
    """
    options = {name: value for name, value in given.items() if name in _OF_TASKS}
    kwargs = {name: value for name, value in given.items() if name not in _OF_TASKS}
    options.setdefault("name", label)
    return Task(with_executor(executor, ""), kwargs, references=False, chosen=True, **options)
