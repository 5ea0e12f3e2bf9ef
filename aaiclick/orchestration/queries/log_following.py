"""Reading the logs of a task or of all tasks of a job, from the log store.

A log is read whole, by its last lines, or followed until the task or the job ends. Where the rest of a log has not
arrived although its run has ended, a line says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple

from aaiclick.errors import NotFound
from aaiclick.orchestration.execution.logs.log_reading import PART_BYTES_MAX, LogPart, read_log
from aaiclick.orchestration.jobs import get_job
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.queries.job_graphs import list_job_tasks
from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK, TaskStatus
from aaiclick.orchestration.tasks import get_task

LOOK_EVERY_S = 0.5
PAGE = 1000
SHARE = 5
"""After one pass over all tasks of a job, the follower sleeps this many times as long as the pass took."""


MISSING = b"[aaiclick] The rest of this log has not arrived from the machine of its worker.\n"

LATE_S = 15.0
"""For how long a follower waits for the rest of a log whose run has ended."""


class LogPosition(NamedTuple):
    """How far a log was read: the offset in bytes, and the number of the attempt's file."""

    offset: int
    file: int | None = None
    complete: bool = True
    """False if the rest of the log had yet to arrive."""


BEGINNING = LogPosition(0)


class LogPiece(NamedTuple):
    """A piece of the log of one task of a job."""

    task: Any
    """The task's row: id, name, status and so on."""
    data: bytes


async def read_part(task_id: int, epoch: int | None = None, offset: int = 0) -> LogPart | None:
    """Return some bytes of a log from `offset` on; None if there is no such log."""
    return await asyncio.to_thread(read_log, task_id, epoch, offset=offset)


async def read_tail(task_id: int, epoch: int | None = None, *, lines: int) -> tuple[bytes, LogPosition]:
    """Return the last lines of a log, taken from its last megabyte, and the position after them."""
    part = await read_part(task_id, epoch, -PART_BYTES_MAX)
    if part is None:
        return b"", LogPosition(0)
    end = max(0, part.size - PART_BYTES_MAX) + len(part.data)
    kept = part.data.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(kept), LogPosition(end, part.file, part.complete)


async def follow_log(
    task_id: int, epoch: int | None = None, *, start: LogPosition = BEGINNING
) -> AsyncGenerator[bytes, None]:
    """Yield the log from a position on, until the task ends; an empty piece whenever there is nothing new.

    When another attempt begins, its log is read from the beginning. If the rest of the log has not arrived some time
    after the end, the last piece says so.
    """
    place, late_s = start, 0.0
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
            continue
        if _is_over(now, epoch):
            if part is None or part.complete:
                return
            if late_s >= LATE_S:
                yield MISSING
                return
            late_s += LOOK_EVERY_S
        yield b""
        await asyncio.sleep(LOOK_EVERY_S)


def _is_over(task: Task | None, epoch: int | None) -> bool:
    """Return whether an attempt, or with None the task, has ended."""
    return task is None or task.status in ENDED_TASK or (epoch is not None and epoch != task.epoch)


async def read_whole(task_id: int, epoch: int | None = None, *, lines: int | None = None) -> AsyncIterator[bytes]:
    """Yield the bytes that a log has now, or only its last lines."""
    if lines is not None:
        data, place = await read_tail(task_id, epoch, lines=lines)
        complete = place.complete
        yield data
    else:
        offset, complete = 0, True
        while (part := await read_part(task_id, epoch, offset)) is not None:
            complete = part.complete
            if not part.data:
                break
            yield part.data
            offset += len(part.data)
    if not complete and _is_over(await get_task(task_id), epoch):
        yield MISSING


# ---------------------------------------------------------------- of a job


async def read_job_logs(
    job_id: int, *, status: TaskStatus | None = None, lines: int | None = None
) -> AsyncIterator[LogPiece]:
    """Yield the logs of a job's tasks, in the order in which the tasks were created.

    A task without a log, or with an empty one, gives one empty piece.
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
                if task.id in places and not places[task.id].complete:
                    yield LogPiece(task, MISSING)
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
        if part is None:
            return
        places[task.id] = LogPosition(place.offset + len(part.data), part.file, part.complete)
        if not part.data:
            return
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
