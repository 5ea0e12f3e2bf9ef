"""Answers that stay open: so many at once, so long, and not beyond the end of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

STREAMS_MAX = 200
STREAM_S_MAX = 900.0
"""Then whoever listens comes again, with a token that is looked at again."""


class Streams:
    """Counts those that are open, and tells them when the server ends."""

    def __init__(self) -> None:
        self.open = 0
        self.ending = asyncio.Event()

    def enter(self) -> None:
        if self.open >= STREAMS_MAX:
            raise HTTPException(503, f"{STREAMS_MAX} answers are open already.")
        self.open += 1


def streaming(app: Starlette, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """These parts, until they end, the time is over, or the server ends."""
    streams: Streams = app.state.streams
    streams.enter()
    return _until_the_end(streams, parts)


async def _until_the_end(streams: Streams, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    ending = asyncio.ensure_future(streams.ending.wait())
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(STREAM_S_MAX):
                while not ending.done():
                    part = asyncio.ensure_future(anext(parts, None))
                    await asyncio.wait((part, ending), return_when=asyncio.FIRST_COMPLETED)
                    if not part.done():
                        part.cancel()
                        with suppress(asyncio.CancelledError):
                            await part
                        return
                    data = part.result()
                    if data is None:
                        return
                    if data:
                        yield data
    finally:
        ending.cancel()
        streams.open -= 1
