"""A workflow as people write one: what it imports is what a child imports beside our own."""

from __future__ import annotations

import sys

from aaiclick.orchestration import Context, Task, create_task, get_current_job_id, job, map, orch_context, task

__all__ = ["Context", "Task", "create_task", "get_current_job_id", "map", "orch_context"]


@task
def loaded() -> list[str]:
    """What this process has imported."""
    return sorted(sys.modules)


@job
def pipeline() -> list[str]:
    """One task."""
    return loaded()
