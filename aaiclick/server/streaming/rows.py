"""Whole Objects, streamed in the format of Arrow, however many rows there are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from starlette.requests import Request

from aaiclick.data.context import data_context, opened_context
from aaiclick.data.frames import Frame
from aaiclick.data.results.reading import query_of
from aaiclick.errors import Conflict
from aaiclick.orchestration.jobs import get_opened_result
from aaiclick.server.openapi import Responses
from aaiclick.server.streaming.streams import Stream

if TYPE_CHECKING:
    import pyarrow as pa

MEDIA_TYPE = "application/vnd.apache.arrow.stream"

ARROW: Responses = {
    200: {
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        "description": "The streaming format of Arrow. Without its end mark the answer was cut off.",
    }
}


async def object_query(name: str) -> str:
    """Return the query for all rows of a global Object; raise ObjectNotFound."""
    async with data_context(oplog=False) as context:
        return query_of((await context.open_object(name))._relation)


async def result_query(job_id: int) -> str:
    """Return the query for all rows of the Object that a job returned; raise Conflict if it returned none."""
    async with data_context(oplog=False):
        found = await get_opened_result(job_id)
        if not isinstance(found, Frame):
            cause = f"it returned no Object, but a {type(found).__name__}"
            hint = f"Read it with GET /api/v1/jobs/{job_id}/result."
            raise Conflict(what=f"The result of job {job_id}", verb="read as Arrow", cause=cause, hint=hint)
        return query_of(found._relation)


def rows_stream(request: Request, query: str) -> Stream:
    """Return the answer with the rows of a query."""
    return Stream(request, _parts(query), media_type=MEDIA_TYPE)


async def _parts(query: str) -> AsyncGenerator[bytes, None]:
    import pyarrow as pa  # here, to keep start-up light

    told = _Told()
    # not the current context: each part is asked for by a task of its own
    async with opened_context(oplog=False) as context:
        writer: pa.ipc.RecordBatchStreamWriter | None = None
        async with aclosing(context.client.batches(query)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                writer = writer or pa.ipc.new_stream(told, batch.schema)
                writer.write_batch(batch)
                yield told.taken()
        if writer is None:  # there are no rows: only the columns
            writer = pa.ipc.new_stream(told, (await context.client.arrow(query)).schema)
        writer.close()
    yield told.taken()


class _Told:
    """A file that is written by Arrow, and emptied part by part."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
