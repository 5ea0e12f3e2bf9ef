"""Reading the logs of a task or of all tasks of a job, from the log directory of this machine.

A log is read whole, by its last lines, or followed until the task or the job ends. A log that a worker on another
machine wrote elsewhere is not found here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple

from aaiclick.errors import NotFound
from aaiclick.orchestration.execution.logs.log_reading import PART_BYTES_MAX, LogPart, read_log
from aaiclick.orchestration.jobs import get_job
from aaiclick.orchestration.queries.job_graphs import list_job_tasks
from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK, TaskStatus
from aaiclick.orchestration.tasks import get_task

LOOK_EVERY_S = 0.5
PAGE = 1000
SHARE = 5
"""After one pass over all tasks of a job, the follower sleeps this many times as long as the pass took."""


class LogPosition(NamedTuple):
    """How far a log was read: the offset in bytes, and the inode of the file. Each attempt writes its own file."""

    offset: int
    file: int | None = None


BEGINNING = LogPosition(0)


class LogPiece(NamedTuple):
    """A piece of the log of one task of a job."""

    task: Any
    """The task's row: id, name, status and so on."""
    data: bytes


async def read_part(task_id: int, epoch: int | None = None, offset: int = 0) -> LogPart | None:
    """Return some bytes of a log from `offset` on; None if there is no such file on this machine."""
    return await asyncio.to_thread(read_log, task_id, epoch, offset=offset)


async def read_tail(task_id: int, epoch: int | None = None, *, lines: int) -> tuple[bytes, LogPosition]:
    """Return the last lines of a log, taken from its last megabyte, and the position after them."""
    part = await read_part(task_id, epoch, -PART_BYTES_MAX)
    if part is None:
        return b"", LogPosition(0)
    end = max(0, part.size - PART_BYTES_MAX) + len(part.data)
    kept = part.data.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(kept), LogPosition(end, part.file)


async def follow_log(
    task_id: int, epoch: int | None = None, *, start: LogPosition = BEGINNING
) -> AsyncGenerator[bytes, None]:
    """Yield the log from a position on, until the task ends; an empty piece whenever there is nothing new.

    When another attempt begins, its log is read from the beginning.
    """
    place = start
    while True:
        now = await get_task(task_id)  # before reading the log: if the task has ended, the read below gets the rest
        part = await read_part(task_id, epoch, place.offset)
        if part is not None and place.file not in (None, part.file):
            place = LogPosition(0, part.file)
            continue
        if part is not None:
            place = LogPosition(place.offset + len(part.data), part.file)
        if part is not None and part.data:
            yield part.data
        elif now is None or now.status in ENDED_TASK or (epoch is not None and epoch != now.epoch):
            return
        else:
            yield b""
            await asyncio.sleep(LOOK_EVERY_S)


async def read_whole(task_id: int, epoch: int | None = None, *, lines: int | None = None) -> AsyncIterator[bytes]:
    """Yield the bytes that a log has now, or only its last lines."""
    if lines is not None:
        yield (await read_tail(task_id, epoch, lines=lines))[0]
        return
    offset = 0
    while (part := await read_part(task_id, epoch, offset)) is not None and part.data:
        yield part.data
        offset += len(part.data)


# ---------------------------------------------------------------- of a job


async def read_job_logs(
    job_id: int, *, status: TaskStatus | None = None, lines: int | None = None
) -> AsyncIterator[LogPiece]:
    """Yield the logs of a job's tasks, in the order in which the tasks were created.

    A task without a log on this machine, or with an empty one, gives one empty piece.
    """
    async for task in _tasks(job_id, status):
        wrote = False
        async for data in read_whole(task.id, lines=lines):
            wrote = wrote or bool(data)
            if data:
                yield LogPiece(task, data)
        if not wrote:
            yield LogPiece(task, b"")


async def follow_job_logs(job_id: int, *, lines: int | None = None) -> AsyncIterator[LogPiece]:
    """Yield what a job's tasks have written, and then what they add, until the job has ended.

    With `lines`, each log begins with its last lines.
    """
    places: dict[int, LogPosition] = {}
    read_to_the_end: set[tuple[int, Any]] = set()
    while True:
        began = time.monotonic()
        job = await get_job(job_id)  # before its tasks, and these before their logs: the last pass misses nothing
        if job is None:
            raise NotFound(what="job", field="id", value=job_id, hint="See: aaiclick job list")
        async for task in _tasks(job_id):
            if (task.id, task.completed_at) in read_to_the_end:
                continue
            async for piece in _new(task, places, lines):
                yield piece
            if task.status in ENDED_TASK:
                read_to_the_end.add((task.id, task.completed_at))
        if job.status in ENDED_JOB:
            return
        await asyncio.sleep(max(LOOK_EVERY_S, SHARE * (time.monotonic() - began)))


async def _new(task: Any, places: dict[int, LogPosition], lines: int | None) -> AsyncIterator[LogPiece]:
    """Yield what a log has gained since the last call; in the first call its last `lines`, or all of it.

    `places` maps task ids to positions and is updated.
    """
    if task.id not in places and lines is not None:
        data, places[task.id] = await read_tail(task.id, lines=lines)
        if data:
            yield LogPiece(task, data)
    while True:
        place = places.get(task.id, LogPosition(0))
        part = await read_part(task.id, None, place.offset)
        if part is not None and place.file not in (None, part.file):
            places[task.id] = LogPosition(0, part.file)
            continue
        if part is None or not part.data:
            return
        places[task.id] = LogPosition(place.offset + len(part.data), part.file)
        yield LogPiece(task, part.data)


async def _tasks(job_id: int, status: TaskStatus | None = None) -> AsyncIterator[Any]:
    """Yield the rows of a job's tasks, read in pages of PAGE."""
    after: int | None = None
    while True:
        rows = await list_job_tasks(job_id, status, after, PAGE)
        for row in rows:
            yield row
        if len(rows) < PAGE:
            return
        after = rows[-1].id
