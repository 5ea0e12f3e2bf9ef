"""Events over HTTP: as pages, and as a stream that can be taken up again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.errors import InputError
from aaiclick.orchestration.feed import newest_event, read_feed
from aaiclick.orchestration.rules.names import check_id, shorten
from aaiclick.server import models, requests
from aaiclick.server.answers import answer
from aaiclick.server.documents import told
from aaiclick.server.streams import Stream
from aaiclick.server.who import Viewer

LOOK_EVERY_S = 0.5
ALIVE_EVERY_S = 15.0
"""Whoever stands between would close what is silent for long."""

STREAM = "text/event-stream"

router = APIRouter(prefix="/events", tags=["events"])

_EVENT = {"type": "object", "properties": {name: {"type": "string"} for name in ("id", "event", "data")}}
_STREAM = {
    "content": {STREAM: {"schema": _EVENT}},  # of each event: what reads such streams by their document expects that
    "description": "Server-sent events: `id`, `event` (the move), `data` (an EventAnswer).",
}
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="It wins over `after`.")]


@router.get("", response_model=models.EventPage, responses=told())
async def list_(request: Request, _: Viewer, asked: Annotated[requests.EventsQuery, Query()]) -> Response:
    """List events, the oldest first."""
    page = await read_feed(int(asked.after or 0), job_id=to_id(asked.job_id), limit=asked.limit)
    return answer(request, models.EventPage.of(page.events, page.cursor))


@router.get("/stream", response_class=Response, responses=told() | {200: _STREAM})
async def stream(
    request: Request, _: Viewer, asked: Annotated[requests.StreamQuery, Query()], last_event_id: LastEventId = None
) -> Response:
    """Tell events as they happen. Whoever comes again with `Last-Event-ID` misses nothing, and hears nothing twice.

    A stream ends after a quarter of an hour, when the server ends, and soon after its token counts no more.
    """
    given = asked.after if last_event_id is None else last_event_id
    after = await newest_event() if given is None else _place(given)
    return Stream(
        request,
        _events(after, to_id(asked.job_id)),
        media_type=STREAM,
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def to_id(text: str | None) -> int | None:
    """An id, or none."""
    return None if text is None else check_id(int(text), "job id")


def _place(text: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) >= 2**63:
        raise InputError(field="Last-Event-ID", value=shorten(text), rule="the id of an event, or 0", hint="")
    return int(text)


async def _events(after: int, job_id: int | None) -> AsyncGenerator[bytes, None]:
    yield b": here\n\n"
    told_at = SYSTEM_CLOCK.monotonic()
    while True:
        page = await read_feed(after, job_id=job_id, limit=1000)
        moved, after = page.cursor != after, page.cursor
        for event in page.events:
            shown = models.EventAnswer.of(event)
            yield f"id: {shown.id}\nevent: {shown.move}\ndata: {shown.model_dump_json()}\n\n".encode()
        if moved and not (page.events and page.events[-1].id == after):
            yield f"id: {after}\n\n".encode()  # others' events: a client that comes again need not hear of them
        if moved:
            told_at = SYSTEM_CLOCK.monotonic()
            continue
        if SYSTEM_CLOCK.monotonic() - told_at >= ALIVE_EVERY_S:
            yield b": still here\n\n"
            told_at = SYSTEM_CLOCK.monotonic()
        await asyncio.sleep(LOOK_EVERY_S)
