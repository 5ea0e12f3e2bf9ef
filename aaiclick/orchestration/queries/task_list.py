"""Lists of tasks over all jobs."""

from __future__ import annotations

from aaiclick.errors import InputError
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.rules.validation import (
    check_id,
    check_name,
    check_paging,
    check_status,
    like_pattern,
    shorten,
)
from aaiclick.orchestration.store.reading import task_list as store
from aaiclick.orchestration.store.reading.task_list import Found, TaskChoice

BLOCKED = ("placement",)


async def list_tasks(
    status: TaskStatus | str | None = None,
    limit: int | None = None,
    *,
    name_like: str | None = None,
    node: str | None = None,
    lane: int | None = None,
    blocked: str | None = None,
    before: int | None = None,
) -> Found:
    """Return a page of tasks of all jobs, newest first, and what the next page begins behind (its `before`).

    `node`: the name of the node whose workers have them, or had them last. `blocked="placement"`: ready tasks that no
    node may run which is open and alive, in the order of their queue. A page looks through a bounded number of tasks,
    so it may have fewer than `limit` and yet a next one.
    """
    choice = TaskChoice(
        None if status is None else check_status(status, TaskStatus),
        name_like,
        None if node is None else check_name(node, "node"),
        lane,
    )
    if name_like is not None:
        like_pattern(name_like)
    if lane is not None and (type(lane) is not int or not 0 <= lane < 2**31):
        raise InputError(
            field="lane",
            value=shorten(lane),
            rule="a whole number of 31 bits",
            hint="0 is that of tasks without needs.",
        )
    if blocked is not None and blocked not in BLOCKED:
        raise InputError(field="blocked", value=shorten(blocked), rule=f"one of {', '.join(BLOCKED)}", hint="")
    start = None if before is None else check_id(before, "before")
    count, _ = check_paging(limit, None)
    async with connected() as database:
        if blocked is None:
            return await database.read(lambda session: store.list_tasks(session, choice, start, count))
        known = database.lanes
        return await database.read(lambda session: store.list_blocked(session, known, choice, start, count))
