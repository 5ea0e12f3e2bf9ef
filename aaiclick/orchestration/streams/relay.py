"""The relay: reads the inbound streams, and acknowledges an entry once what it asks for is committed.

The leader's process runs it. Two at once do no harm: an entry's `job_id` is the key of its job, and orders may repeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.backoff import Backoff, said
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.errors import (
    Conflict,
    InputError,
    NotAllowed,
    NotFound,
    SignatureMismatch,
    TooManyTasks,
    ValueExposed,
    ValueNotPortable,
    ValueTooLarge,
)
from aaiclick.orchestration.bus.redis_connecting import RedisServer
from aaiclick.orchestration.rules.validation import mask_secrets
from aaiclick.orchestration.streams.deeds import obey_entry, submit_entry
from aaiclick.orchestration.streams.entries import Entry, read_entry, readable_id
from aaiclick.urls import mask_url

if TYPE_CHECKING:
    from redis.asyncio import Redis

CONSUMER = "aaiclick"
"""One name for all relays: entries that one of them has read and not acknowledged are reclaimed by their age."""

READ_AT_ONCE = 20
RECLAIMED_AT_ONCE = 20
ATTEMPTS_MAX = 5
"""How often an entry is tried that fails in a way which may pass."""
DEAD_KEPT = 10_000
PAUSE_S = 0.25
BEGINNING = b"0-0"

REFUSED = (
    *(Conflict, InputError, NotAllowed, NotFound, SignatureMismatch, TooManyTasks),
    *(ValueExposed, ValueNotPortable, ValueTooLarge),
)
"""Errors that say that the entry itself is wrong: the same entry fails again."""


class Inbound(NamedTuple):
    """A stream that others write, with the group that reads it."""

    name: str
    group: str
    act: Callable[[Entry], Awaitable[None]]


INBOUND = (
    Inbound("inference_jobs", "cg:inference", submit_entry),
    Inbound("preloads", "cg:preloads:workers", submit_entry),
    Inbound("ingest_events", "cg:ingest_events", submit_entry),
    Inbound("control", "cg:control", obey_entry),
)


class Relay:
    """Reads the inbound streams of one installation while `leads` says so."""

    def __init__(
        self,
        redis_url: str,
        prefix: str,
        leads: Callable[[], bool],
        *,
        idle_ms: int,
        bytes_max: int,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._url, self._prefix, self._leads = redis_url, prefix, leads
        self._idle_ms, self._bytes_max = idle_ms, bytes_max
        self._clock = clock
        self._reclaim_from = dict.fromkeys((each.name for each in INBOUND), BEGINNING)
        self._reclaim_at = clock.monotonic()
        self._backoff, self._entries = Backoff(clock), Backoff(clock)

    @classmethod
    def of_settings(cls, leads: Callable[[], bool]) -> Relay:
        """Return the relay that the settings describe."""
        found = settings()
        return cls(
            found.redis_url,
            found.redis_prefix,
            leads,
            idle_ms=found.claim_idle_ms,
            bytes_max=found.value_bytes_max,
        )

    async def run(self) -> None:
        """Read until cancelled, and connect again whenever the connection is lost."""
        while not _is_cancelled():
            if self._leads():
                with self._backoff.told(f"reading streams of {mask_url(self._url)}"):
                    await self._read_while_leading()
            await self._clock.sleep(max(self._backoff.pause_s, PAUSE_S))

    async def _read_while_leading(self) -> None:
        server = RedisServer(self._url, name="aaiclick-relay")
        try:
            while self._leads() and not _is_cancelled():
                found = await self.round(server.client)
                self._backoff.over()
                if not found:
                    await server.require_master()
                    await self._clock.sleep(PAUSE_S)
        finally:
            await server.close()

    async def round(self, client: Redis) -> int:
        """Read each stream once, a bounded number of entries, and reclaim old ones; return how many there were."""
        found = 0
        reclaims = self._clock.monotonic() >= self._reclaim_at
        if reclaims:
            self._reclaim_at = self._clock.monotonic() + self._idle_ms / 2000
        for stream in INBOUND:
            entries = [*(await self._reclaimed(client, stream) if reclaims else ()), *await self._new(client, stream)]
            for entry_id, fields in entries:
                await self._take(client, stream, entry_id, fields)
            found += len(entries)
        return found

    async def _new(self, client: Redis, stream: Inbound) -> list[tuple[bytes, Any]]:
        from redis.exceptions import ResponseError  # an extra dependency

        key = self._prefix + stream.name
        try:
            answer: Any = await client.xreadgroup(stream.group, CONSUMER, {key: ">"}, count=READ_AT_ONCE)
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            await self._make_group(client, key, stream.group)
            return []
        return list(answer[0][1]) if answer else []

    async def _make_group(self, client: Redis, key: str, group: str) -> None:
        """Make the group, from the first entry that there is: also after everything was removed."""
        from redis.exceptions import ResponseError  # an extra dependency

        try:
            await client.xgroup_create(key, group, id="0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):  # another relay has made it
                raise

    async def _reclaimed(self, client: Redis, stream: Inbound) -> list[tuple[bytes, Any]]:
        """Take over entries that were read long ago and not acknowledged, by one call that looks at some of them."""
        from redis.exceptions import ResponseError  # an extra dependency

        key, start = self._prefix + stream.name, self._reclaim_from[stream.name]
        try:
            answer: Any = await client.xautoclaim(
                key, stream.group, CONSUMER, self._idle_ms, start_id=start, count=RECLAIMED_AT_ONCE
            )
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            return []
        self._reclaim_from[stream.name] = answer[0]  # 0-0 at the end: the next call begins anew
        return [(entry_id, fields) for entry_id, fields in answer[1] if fields is not None]

    async def _take(self, client: Redis, stream: Inbound, entry_id: bytes, fields: Mapping[bytes, bytes]) -> None:
        """Do what an entry asks for, then acknowledge it. What fails in passing stays, and is reclaimed later."""
        key = self._prefix + stream.name
        origin = f"{key}/{entry_id.decode()}"
        try:
            await stream.act(read_entry(fields, origin, bytes_max=self._bytes_max))
        except REFUSED as error:
            await self._bury(client, stream, entry_id, fields, error)
        except Exception as error:
            self._entries.met(f"taking the entry {origin}", error, "trying again later")
            if await self._attempts(client, key, stream.group, entry_id) >= ATTEMPTS_MAX:
                await self._bury(client, stream, entry_id, fields, error)
        else:
            self._entries.over()
            await client.xack(key, stream.group, entry_id)

    async def _bury(
        self, client: Redis, stream: Inbound, entry_id: bytes, fields: Mapping[bytes, bytes], error: Exception
    ) -> None:
        """Add an entry to the dead letters and acknowledge it, both or neither."""
        key = self._prefix + stream.name
        origin = f"{key}/{entry_id.decode()}"
        letter: dict[Any, Any] = {
            "job_id": readable_id(fields, origin),
            "origin_id": origin,
            "attempts": await self._attempts(client, key, stream.group, entry_id),
            "last_error": mask_secrets(said(error)),
        }
        async with client.pipeline(transaction=True) as opened:
            both: Any = opened  # its commands are queued, and not awaited
            both.xadd(f"{self._prefix}dlq", letter, maxlen=DEAD_KEPT, approximate=True)
            both.xack(key, stream.group, entry_id)
            await both.execute()

    async def _attempts(self, client: Redis, key: str, group: str, entry_id: bytes) -> int:
        """Return how often an entry was delivered; 1 if Redis has forgotten it."""
        named = entry_id.decode()
        found: Any = await client.xpending_range(key, group, min=named, max=named, count=1)
        return int(found[0]["times_delivered"]) if found else 1


def _is_cancelled() -> bool:
    """Return whether somebody has cancelled this task: the client of Redis may swallow that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
