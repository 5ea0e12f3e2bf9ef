"""Answers that stay open: so many at once, so long, and not beyond the end of the server or of their token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.config import settings
from aaiclick.errors import AaiclickError
from aaiclick.orchestration.access.tokens import still_counts
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.store.connecting import explain
from aaiclick.server.auth.token_quotas import PLACE, TokenQuotas
from aaiclick.server.transport.access_log import shown_path

STREAMS_MAX, STREAMS_EACH, STREAMS_KEPT, STREAMS_FEW = 200, 100, 40, 4
"""In all, for one token, the last ones, and how many each may have to get one of those."""

STREAM_S_MAX = 900.0
"""Then whoever listens comes again."""

SLOW_S_MAX = 60.0
"""So much longer an answer waits for somebody who does not read it."""

TOKEN_EVERY_S = 10.0
"""So often the token is looked at again: what is revoked or expired hears no more."""


log = logging.getLogger("aaiclick.server")


class Streams:
    """Counts those that are open, looks at their tokens, and tells them when the server ends."""

    def __init__(self) -> None:
        self.places = TokenQuotas("answers that stay open", STREAMS_MAX, STREAMS_EACH, STREAMS_KEPT, STREAMS_FEW)
        self.ending = asyncio.Event()
        self._looks: dict[tuple[int, float], asyncio.Task[bool]] = {}

    @property
    def open(self) -> int:
        """How many there are."""
        return self.places.number

    async def still_counts(self, token_id: int, now: float) -> bool:
        """Whether a token counts. Streams look at the same times, and share one look at a token."""
        turn = now // TOKEN_EVERY_S
        if (token_id, turn) not in self._looks:
            self._looks = {key: look for key, look in self._looks.items() if key[1] == turn}
            self._looks[token_id, turn] = asyncio.create_task(still_counts(token_id))
        return await asyncio.shield(self._looks[token_id, turn])  # whoever leaves does not end it for the others


class Stream(StreamingResponse):
    """These parts, until they end, the time is over, the token counts no more, or the server ends."""

    def __init__(
        self,
        request: Request,
        parts: AsyncGenerator[bytes, None],
        *,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(self._told(), media_type=media_type, headers=headers)
        self._streams: Streams = request.app.state.streams
        self._token: Token = request.state.token
        self._parts = parts
        self._next: asyncio.Future[bytes | None] | None = None
        self._ending: asyncio.Future[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Counted from here on, not from when it was made: whoever has left by now would be counted for ever."""
        with self._streams.places.of(self._token.id):
            if (place := scope["state"].get(PLACE)) is not None:
                place.close()
            await self._tell(scope, receive, send)

    async def _tell(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(STREAM_S_MAX + SLOW_S_MAX):
                    await super().__call__(scope, receive, send)
        except Exception as error:  # whoever listens notices that the answer has no end, and comes again
            known = error if isinstance(error, AaiclickError) else explain(error, settings().sql_url)
            if known is None:
                raise
            log.warning("%s %s was cut off: %s", scope["method"], shown_path(scope["path"]), known)
        finally:
            await self._close()

    async def _told(self) -> AsyncIterator[bytes]:
        now = SYSTEM_CLOCK.monotonic()
        ends_at, look_at = now + STREAM_S_MAX, _next_look(now)
        ending = self._ending = asyncio.ensure_future(self._streams.ending.wait())
        while not ending.done() and (now := SYSTEM_CLOCK.monotonic()) < ends_at:
            if now >= look_at:
                if not await self._streams.still_counts(self._token.id, now):
                    return
                look_at = _next_look(now)
            if self._next is None:
                self._next = asyncio.ensure_future(anext(self._parts, None))
            await asyncio.wait(
                (self._next, ending), timeout=min(ends_at, look_at) - now, return_when=asyncio.FIRST_COMPLETED
            )
            if not self._next.done():
                continue
            part, self._next = self._next.result(), None
            if part is None:
                return
            if part:
                yield part

    async def _close(self) -> None:
        """Nothing of it goes on unheard, however it ended."""
        waiting = [each for each in (self._next, self._ending) if each is not None]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await self._parts.aclose()


def _next_look(now: float) -> float:
    """The same times for all streams, however they were opened."""
    return (now // TOKEN_EVERY_S + 1) * TOKEN_EVERY_S
