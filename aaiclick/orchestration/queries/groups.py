"""The progress of a group: its tasks, counted by status."""

from __future__ import annotations

from dataclasses import dataclass

from aaiclick.errors import NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.validation import check_id
from aaiclick.orchestration.store.reading.group_progress import count_tasks_in_group

_RUNNING = (TaskStatus.CLAIMED, TaskStatus.RUNNING, TaskStatus.PENDING_CLEANUP)
_FAILED = (TaskStatus.FAILED, TaskStatus.UPSTREAM_FAILED)


@dataclass(slots=True, frozen=True)
class GroupProgress:
    """Counts of the tasks inside a group, at any depth. `total` may grow while tasks inside the group add others."""

    group_id: int
    name: str
    total: int
    completed: int
    failed: int
    """Tasks that failed for good, and tasks downstream of one that did."""
    cancelled: int
    skipped: int
    running: int
    pending: int
    by_status: dict[str, int]


async def get_group_progress(group_id: int) -> GroupProgress:
    """Count the tasks inside a group by status. In the group of an operator (map, filter …), each part is a task.

    Raise NotFound if there is no such group.
    """
    wanted = check_id(group_id, "group id")
    async with connected() as database:
        found = await database.read(lambda session: count_tasks_in_group(session, wanted))
    if found is None:
        raise NotFound(what="group", field="id", value=wanted, hint="")
    name, counts = found
    return GroupProgress(
        group_id=wanted,
        name=name,
        total=sum(counts.values()),
        completed=counts.get(TaskStatus.COMPLETED, 0),
        failed=sum(counts.get(status, 0) for status in _FAILED),
        cancelled=counts.get(TaskStatus.CANCELLED, 0),
        skipped=counts.get(TaskStatus.SKIPPED, 0),
        running=sum(counts.get(status, 0) for status in _RUNNING),
        pending=counts.get(TaskStatus.PENDING, 0),
        by_status={str(status): counts[status] for status in TaskStatus if counts.get(status)},
    )
