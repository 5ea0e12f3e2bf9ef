"""Streaming answers: limited in number and duration, and ended with the server or when their token is revoked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
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
"""Open streams: in all, per token, the number kept back, and how many a token may have to get one of those."""

STREAM_S_MAX = 900.0
"""Seconds after which a stream ends; its client reconnects."""

SLOW_S_MAX = 60.0
"""Further seconds that a stream waits for a client that does not read."""

TOKEN_EVERY_S = 10.0
"""Seconds between two checks of a stream's token, which may have been revoked or have expired."""


log = logging.getLogger("aaiclick.server")


class Streams:
    """The open streams of one server: their quota, the checks of their tokens, and the signal that the server ends."""

    def __init__(self, look: Callable[[int], Coroutine[Any, Any, bool]] | None = None) -> None:
        """`look` tells whether a token is still valid; by default, the database does."""
        self.places = TokenQuotas("answers that stay open", STREAMS_MAX, STREAMS_EACH, STREAMS_KEPT, STREAMS_FEW)
        self._look = look
        self.ending = asyncio.Event()
        self._looks: dict[tuple[int, float], asyncio.Task[bool]] = {}

    @property
    def open(self) -> int:
        """The number of open streams."""
        return self.places.number

    async def still_counts(self, token_id: int, now: float) -> bool:
        """Return whether a token is still valid. Streams check at the same times and share one query per token."""
        turn = now // TOKEN_EVERY_S
        if (token_id, turn) not in self._looks:
            self._looks = {key: look for key, look in self._looks.items() if key[1] == turn}
            self._looks[token_id, turn] = asyncio.create_task((self._look or still_counts)(token_id))
        return await asyncio.shield(self._looks[token_id, turn])  # a cancelled stream must not end it for others


class Stream(StreamingResponse):
    """A response of these parts, until they end, STREAM_S_MAX is over, the token is invalid or the server ends."""

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
        """Take a place only now, not at construction: if the client has left before, this is never called."""
        with self._streams.places.of(self._token.id):
            if (place := scope["state"].get(PLACE)) is not None:
                place.close()
            await self._tell(scope, receive, send)

    async def _tell(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(STREAM_S_MAX + SLOW_S_MAX):
                    await super().__call__(scope, receive, send)
        except Exception as error:  # the client notices that the answer is incomplete, and reconnects
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
        """Cancel pending work and close the generator of parts, however the stream ended."""
        waiting = [each for each in (self._next, self._ending) if each is not None]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await self._parts.aclose()


def _next_look(now: float) -> float:
    """Return the next check time: multiples of TOKEN_EVERY_S, the same for all streams."""
    return (now // TOKEN_EVERY_S + 1) * TOKEN_EVERY_S
