"""One reader of new events for all streams of this server, so that database queries do not grow with the streams.

The reader keeps a window of the newest events. Each stream knows the id of the last event it has sent: it takes later
ones from the window, and those before the window from the database. A resumed stream and one that fell behind thus
reach the window by the same comparison, without gaps or repeats, and a slow stream needs no buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.orchestration.models import Event
from aaiclick.orchestration.queries.event_feed import newest_event, read_feed
from aaiclick.representations.events import event_answer
from aaiclick.server.responses import to_json
from aaiclick.server.streaming.event_window import EventMessage, EventPiece, EventWindow

LOOK_EVERY_S = 0.5
PAGE = 500


class EventReader:
    """Reads new events into a window while there are listeners, and serves all streams from it."""

    def __init__(self) -> None:
        self.window = EventWindow(0)
        self.listeners = 0
        self._wanted = asyncio.Event()
        self._moved = _news()
        self._failed = _news()

    async def run(self) -> None:
        """Read while there are listeners, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._follow()
            except Exception as error:  # raised in all waiting streams, which are cut off; clients reconnect
                self._fail(error)
                await asyncio.sleep(LOOK_EVERY_S)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count a listener inside the block."""
        self.listeners += 1
        self._wanted.set()
        try:
            yield
        finally:
            self.listeners -= 1
            if not self.listeners:
                self._wanted.clear()

    async def next_piece(self, after: int, *, job_id: int | None = None, wait_s: float) -> EventPiece | None:
        """Return the next events after this id, or None if there are none within `wait_s` seconds.

        With `job_id` the piece has at least that job's events: one from the window has those of all jobs.
        """
        ends_at = SYSTEM_CLOCK.monotonic() + wait_s
        while (left_s := ends_at - SYSTEM_CLOCK.monotonic()) > 0:
            if after < self.window.start:
                piece = await _read(after, job_id)
                if piece is not None:
                    return piece
                await asyncio.sleep(LOOK_EVERY_S)
            elif (piece := self.window.behind(after)) is not None:
                return piece
            else:
                failed = self._failed
                await asyncio.wait((self._moved, failed), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if failed.done():
                    failed.result()
        return None

    async def _follow(self) -> None:
        """Restart the window at the newest event and read on while there are listeners.

        Streams read events before the window, from the time without listeners, from the database.
        """
        self.window = EventWindow(await newest_event())
        self._wake()
        while self.listeners:
            piece = await _read(self.window.end)
            if piece is None:
                await asyncio.sleep(LOOK_EVERY_S)
            else:
                self.window.add(piece)
                self._wake()

    def _wake(self) -> None:
        moved, self._moved = self._moved, _news()
        moved.set_result(None)

    def _fail(self, error: Exception) -> None:
        failed, self._failed = self._failed, _news()
        failed.set_exception(error)
        failed.exception()  # marks the error as retrieved, as no stream may be waiting; later waits use the new future


def _news() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


async def _read(after: int, job_id: int | None = None) -> EventPiece | None:
    """Return a page of events after this id; None if there is none that may be given out yet."""
    page = await read_feed(after, job_id=job_id, limit=PAGE)
    if page.cursor == after:
        return None
    return EventPiece(after, page.cursor, [_tell(event) for event in page.events])


def _tell(event: Event) -> EventMessage:
    shown = event_answer(event)
    head = f"id: {shown['id']}\nevent: {shown['move']}\ndata: "
    return EventMessage(event.id, event.job_id, head.encode() + to_json(shown) + b"\n\n")
