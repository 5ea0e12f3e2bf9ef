"""The bus over a stream of Redis, `{prefix}hints`: one entry for each message, of which Redis keeps the newest.

Other programs may read it too. Unlike a message of pub/sub, an entry stays within its numbered database of the server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aaiclick.orchestration.bus.local import ALL_HINTS, GAP_S
from aaiclick.orchestration.bus.reconnecting import ReconnectingBus
from aaiclick.orchestration.bus.redis_connecting import BLOCK_S, RedisServer, end

if TYPE_CHECKING:
    from redis.asyncio import Redis

KEPT = 1000
"""About how many entries Redis keeps: whoever was away for longer looks for all work anyway."""

READ_AT_ONCE = 100
FIRST = b"0-0"


class RedisBus(ReconnectingBus):
    """Carries hints between all processes that use the same Redis and the same prefix."""

    def __init__(self, url: str, redis_url: str, prefix: str) -> None:
        super().__init__(url, redis_url)
        self._stream = f"{prefix}hints"

    async def _converse(self) -> None:
        server = RedisServer(self._server_url, name="aaiclick-bus")
        hearing: asyncio.Task[None] | None = None
        try:
            await server.client.ping()
            while not self._closed:
                self._todo.clear()
                if self._listening and hearing is None:
                    newest = await self._newest(server.client)  # now: what is told from here on is heard
                    hearing = asyncio.create_task(self._hear_from(server, newest))
                    hearing.add_done_callback(lambda _: self._todo.set())
                if hearing is not None and hearing.done():
                    hearing.result()
                self._recover()
                await self._send(server.client)
                await self._todo.wait()
        finally:
            if hearing is not None:
                await end(hearing)
            await server.close()

    async def _send(self, client: Redis) -> None:
        words = self._taken()
        if not words:
            return
        sender, _, hints = self._room.pack(words).partition(" ")
        try:
            await client.xadd(self._stream, {"from": sender, "hints": hints}, maxlen=KEPT, approximate=True)
        except Exception:
            self._put_back(words)
            raise
        if not self._outgoing:
            self._settled.set()
        await asyncio.sleep(GAP_S)

    async def _hear_from(self, server: RedisServer, last: bytes) -> None:
        """Hear what is told after the entry `last`, until the connection is lost."""
        while True:
            found: Any = await server.client.xread({self._stream: last}, count=READ_AT_ONCE, block=int(BLOCK_S * 1000))
            for _, entries in found:
                last = entries[-1][0]
                for _, facts in entries:
                    self._hear(self._heard_from(facts))
            if not found:
                await server.require_master()
                last = await self._after_a_pause(server.client, last)

    async def _after_a_pause(self, client: Redis, last: bytes) -> bytes:
        """Return where to read on. A stream that was removed may begin anew with lower ids, by another clock."""
        newest = await self._newest(client)
        if _order(newest) < _order(last):
            self._hear(ALL_HINTS)
            return newest
        return last

    async def _newest(self, client: Redis) -> bytes:
        found: Any = await client.xrevrange(self._stream, count=1)
        return found[0][0] if found else FIRST

    def _heard_from(self, facts: dict[bytes, bytes]) -> frozenset[str]:
        sender, hints = (facts.get(name, b"").decode(errors="replace") for name in (b"from", b"hints"))
        return self._room.unpack(f"{sender} {hints}")


def _order(entry_id: bytes) -> tuple[int, int]:
    time_ms, _, number = entry_id.partition(b"-")
    return int(time_ms), int(number)
