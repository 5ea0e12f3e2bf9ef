"""Dead letters: tasks that failed for good. Here they are listed and replayed."""

from __future__ import annotations

from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.rules.validation import check_id, check_paging
from aaiclick.orchestration.store.reading import dead_letters as store


async def list_dead_letters(
    before: tuple[int, int] | None = None, limit: int | None = None, *, job_id: int | None = None
) -> list[Task]:
    """Return failed tasks, those of the newest jobs first.

    `before` is the (job id, task id) of the last task of the previous page.
    """
    only = None if job_id is None else check_id(job_id, "job id")
    below = None if before is None else (check_id(before[0], "before"), check_id(before[1], "before"))
    count, _ = check_paging(limit)
    async with connected() as database:
        return await database.read(lambda session: store.list_dead_letters(session, below, count, only))


async def replay_dead_letter(task_id: int) -> list[int]:
    """Run a failed task again, with everything downstream of it, and return the ids of all these tasks.

    Raise Conflict if the task is not failed, or no longer: of two callers that replay it at once, one gets Conflict.
    """
    wanted = check_id(task_id, "task id")
    async with coordinated() as coordinator:
        return await coordinator.replay(wanted)
