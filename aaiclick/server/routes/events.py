"""Events over HTTP: as pages, and as a stream that can be taken up again."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from aaiclick.errors import InputError
from aaiclick.orchestration.queries.event_feed import newest_event, read_feed, refuse_future, settled_event
from aaiclick.orchestration.rules.validation import check_id, shorten
from aaiclick.representations.events import EventPage, event_page
from aaiclick.server import request_models
from aaiclick.server.auth.actors import Viewer
from aaiclick.server.openapi import told
from aaiclick.server.responses import answer
from aaiclick.server.streaming.event_reader import EventReader
from aaiclick.server.streaming.streams import Stream

ALIVE_EVERY_S = 15.0
"""Whoever stands between would close what is silent for long."""

STREAM = "text/event-stream"

router = APIRouter(prefix="/events", tags=["events"])

_EVENT = {"type": "object", "properties": {name: {"type": "string"} for name in ("id", "event", "data")}}
_STREAM = {
    "content": {STREAM: {"schema": _EVENT}},  # of each event: what reads such streams by their document expects that
    "description": "Server-sent events: `id`, `event` (the move), `data` (an EventAnswer).",
}
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="It takes precedence over `after`.")]


@router.get("", response_model=EventPage, responses=told())
async def list_(request: Request, _: Viewer, asked: Annotated[request_models.EventsQuery, Query()]) -> Response:
    """List events, oldest first."""
    after = int(asked.after or 0)
    page = await read_feed(after, job_id=to_id(asked.job_id), limit=asked.limit)
    if page.cursor == after:
        refuse_future(after, await newest_event(), "after")
    return answer(request, event_page(page.events, page.cursor))


@router.get("/stream", response_class=Response, responses=told() | {200: _STREAM})
async def stream(
    request: Request,
    _: Viewer,
    asked: Annotated[request_models.StreamQuery, Query()],
    last_event_id: LastEventId = None,
) -> Response:
    """Stream events as they happen. A client that reconnects with `Last-Event-ID` gets each event exactly once.

    A stream ends after a quarter of an hour, when the server ends, and soon after its token becomes invalid. An id
    beyond the newest event is refused: it is from another database, or from before a backup was restored.
    """
    field, given = ("after", asked.after) if last_event_id is None else ("Last-Event-ID", last_event_id)
    if given is None:
        after = await settled_event()
    else:
        after = refuse_future(_place(given, field), await newest_event(), field)
    return Stream(
        request,
        _events(request.app.state.reader, after, to_id(asked.job_id)),
        media_type=STREAM,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def to_id(text: str | None) -> int | None:
    """Return the id, or None."""
    return None if text is None else check_id(int(text), "job id")


def _place(text: str, field: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) >= 2**63:
        raise InputError(field=field, value=shorten(text), rule="it must be the id of an event, or 0", hint="")
    return int(text)


async def _events(reader: EventReader, after: int, job_id: int | None) -> AsyncGenerator[bytes, None]:
    yield b": here\n\n"
    with reader.listening():
        while True:
            piece = await reader.next_piece(after, job_id=job_id, wait_s=ALIVE_EVERY_S)
            if piece is None:
                yield b": still here\n\n"
                continue
            part, after = piece.part(after, job_id), piece.cursor
            yield part
