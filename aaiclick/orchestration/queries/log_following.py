"""The logs of tasks and of whole jobs: their ends, and what is added while one looks."""

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
"""Looking at all tasks of a job takes at most one part in so many, and one, of the time."""


class LogPosition(NamedTuple):
    """Up to where a log was read, and in which file: each attempt has its own."""

    offset: int
    file: int | None = None


BEGINNING = LogPosition(0)


class LogPiece(NamedTuple):
    """Something that a task of a job has written."""

    task: Any
    """Its row: id, name, status and so on."""
    data: bytes


async def read_part(task_id: int, epoch: int | None = None, offset: int = 0) -> LogPart | None:
    """Some bytes of a log; None if there is none here."""
    return await asyncio.to_thread(read_log, task_id, epoch, offset=offset)


async def read_tail(task_id: int, epoch: int | None = None, *, lines: int) -> tuple[bytes, LogPosition]:
    """The last lines of a log, within its last megabyte, and where to go on."""
    part = await read_part(task_id, epoch, -PART_BYTES_MAX)
    if part is None:
        return b"", LogPosition(0)
    end = max(0, part.size - PART_BYTES_MAX) + len(part.data)
    kept = part.data.splitlines(keepends=True)[-lines:] if lines else []
    return b"".join(kept), LogPosition(end, part.file)


async def follow_log(
    task_id: int, epoch: int | None = None, *, start: LogPosition = BEGINNING
) -> AsyncGenerator[bytes, None]:
    """The log from a place on, until its task ends; an empty piece whenever there is nothing new.

    Where another attempt begins, its log from the beginning.
    """
    place = start
    while True:
        now = await get_task(task_id)  # before the log is read: what was written until the end is read after it
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
    """A log as it is now, or its last lines."""
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
    """What the tasks of a job have written, in the order in which they were made; an empty piece for each that has
    written nothing here."""
    async for task in _tasks(job_id, status):
        wrote = False
        async for data in read_whole(task.id, lines=lines):
            wrote = wrote or bool(data)
            if data:
                yield LogPiece(task, data)
        if not wrote:
            yield LogPiece(task, b"")


async def follow_job_logs(job_id: int, *, lines: int | None = None) -> AsyncIterator[LogPiece]:
    """What the tasks of a job have written, and what they write until the job has ended."""
    places: dict[int, LogPosition] = {}
    read_to_the_end: set[tuple[int, Any]] = set()
    while True:
        began = time.monotonic()
        job = await get_job(job_id)  # before its tasks are read, as they before their logs
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
    """What was added to a log since it was read last; the first time, its last lines or all of it."""
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
    """The tasks of a job, a page at a time."""
    after: int | None = None
    while True:
        rows = await list_job_tasks(job_id, status, after, PAGE)
        for row in rows:
            yield row
        if len(rows) < PAGE:
            return
        after = rows[-1].id
