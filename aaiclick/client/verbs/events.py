"""Events as pages, as a stream that outlives its connections, and waiting by it; logs that are followed."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from aaiclick.client.calls import is_away, pause
from aaiclick.client.exchanges import Exchange
from aaiclick.client.verbs.asking import OUTAGE_S_MAX, Id
from aaiclick.client.verbs.jobs import JobVerbs
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.errors import AaiclickError, InputError, WaitTimeout

if TYPE_CHECKING:
    from aaiclick.representations.events import EventAnswer, EventPage
    from aaiclick.representations.jobs import JobAnswer

SILENCE_S_MAX = 45.0
"""A stream says every 15 s that it lives: after so many seconds without a sign, the connection is made again."""

TOLD_EVERY_S = 0.5
"""While a job is waited for, it is read at most so often to tell how far it is."""

ENDED_JOB = frozenset({"completed", "failed", "cancelled"})


class Sign(NamedTuple):
    """What a stream gives: an event, or none where it was opened, anew or again."""

    event: EventAnswer | None


class _Place:
    """How far a stream was read, and how long the server has been away."""

    def __init__(self, after: Id | None, ends_at: float) -> None:
        self.last_id = None if after is None else str(after)
        self.ends_at = ends_at
        self.failures = 0
        self.away_since: float | None = None

    def left_s(self) -> float:
        return self.ends_at - SYSTEM_CLOCK.monotonic()

    def opened(self) -> None:
        self.failures, self.away_since = 0, None

    def is_given_up(self) -> bool:
        """Count a failure, and return whether the server has been away for too long."""
        now = SYSTEM_CLOCK.monotonic()
        self.away_since = now if self.away_since is None else self.away_since
        self.failures += 1
        return now - self.away_since > OUTAGE_S_MAX


class EventVerbs(JobVerbs):
    """Methods about events, and about waiting."""

    async def list_events(
        self, *, after: Id | None = None, job_id: Id | None = None, limit: int | None = None
    ) -> EventPage:
        """Return a page of events, oldest first. `after` is the `next` of the page before; 0 means all."""
        found: EventPage = await self._get("/events", after=after, job_id=job_id, limit=limit)
        return found

    async def follow_events(
        self, *, job_id: Id | None = None, after: Id | None = None, timeout_s: float | None = None
    ) -> AsyncGenerator[EventAnswer, None]:
        """Yield events as they happen, each once, whatever becomes of connections and servers meanwhile.

        Begin after an event, by default with new ones. End after `timeout_s`, by default never; raise
        ServerUnreachable if the server is away for OUTAGE_S_MAX seconds.
        """
        async with aclosing(self._signs(job_id, _Place(after, _end(timeout_s)))) as signs:
            async for sign in signs:
                if sign.event is not None:
                    yield sign.event

    async def wait_for_job(
        self, job_id: Id, *, timeout_s: float | None = None, told: Callable[[JobAnswer], object] | None = None
    ) -> JobAnswer:
        """Wait until a job has ended, and return it; its events say when to look, also after a server's restart.

        `told` is called when its status or number of completed tasks has changed. Raise WaitTimeout after `timeout_s`,
        NotFound, or ServerUnreachable if the server is away for OUTAGE_S_MAX seconds. The job goes on, whether
        somebody waits or not.
        """
        place, looked_at = _Place(None, _end(timeout_s)), 0.0
        job = await self.get_job(job_id)
        seen: tuple[str, int] | None = None
        async with aclosing(self._signs(job_id, place)) as signs:
            while True:
                if told is not None and seen != (seen := (job["status"], job["completed_tasks"])):
                    told(job)
                if job["status"] in ENDED_JOB:
                    return job
                while (sign := await anext(signs, None)) is not None:
                    now = SYSTEM_CLOCK.monotonic()
                    is_of_job = sign.event is None or sign.event["task_id"] is None
                    if is_of_job or (told is not None and now - looked_at >= TOLD_EVERY_S):
                        looked_at = now
                        break
                if sign is None:
                    raise WaitTimeout(job_id=job_id, status=job["status"], timeout_s=timeout_s)
                try:
                    job = await self._patiently(lambda: self.get_job(job_id), place.ends_at)
                except AaiclickError as error:
                    if place.left_s() > 0 or not is_away(error):
                        raise
                    raise WaitTimeout(job_id=job_id, status=job["status"], timeout_s=timeout_s) from error

    async def _signs(self, job_id: Id | None, place: _Place) -> AsyncGenerator[Sign, None]:
        """Yield a sign whenever the stream is opened, and the events; end with the place's time."""
        while (left_s := place.left_s()) > 0:
            try:
                headers = {} if place.last_id is None else {"Last-Event-ID": place.last_id}
                silence_s = min(SILENCE_S_MAX, left_s)
                stream = self._calls.stream("/events/stream", {"job_id": job_id}, headers=headers, timeout_s=silence_s)
                async with stream as exchange:
                    place.opened()
                    async with aclosing(_messages(exchange, place)) as messages:
                        async for sign in messages:
                            yield sign
            except OSError as error:
                if place.is_given_up():
                    raise self._calls.unreachable(error) from error
            except AaiclickError as error:
                if not (is_away(error) or _is_forgotten(error, place)) or place.is_given_up():
                    raise
            await self._calls.network.sleep(max(0.0, min(pause(place.failures), place.left_s())))


async def _messages(exchange: Exchange, place: _Place) -> AsyncGenerator[Sign, None]:
    """Yield what a stream of server-sent events says; the place moves with it."""
    event_id, data, is_opened = "", "", False
    async with aclosing(_lines(exchange, place)) as lines:
        async for line in lines:
            name, _, value = line.partition(": ")
            if not line:  # the end of a message
                place.last_id = event_id or place.last_id
                if data:
                    yield Sign(json.loads(data))
                event_id, data = "", ""
            elif name == "id":
                event_id = value
            elif name == "data":
                data = value
            elif not name and not is_opened:  # the comment with which a stream begins
                is_opened = True
                yield Sign(None)


async def _lines(exchange: Exchange, place: _Place) -> AsyncGenerator[str, None]:
    rest = b""
    async with aclosing(exchange.parts()) as parts:
        async for data in parts:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.decode()
            exchange.wire.timeout_s = max(0.001, min(SILENCE_S_MAX, place.left_s()))


def _is_forgotten(error: AaiclickError, place: _Place) -> bool:
    """Forget the place if the server does not know it, as after a backup was restored, and return whether it did."""
    if not isinstance(error, InputError) or place.last_id is None or "Last-Event-ID" not in str(error):
        return False
    place.last_id = None
    return True


def _end(timeout_s: float | None) -> float:
    return float("inf") if timeout_s is None else SYSTEM_CLOCK.monotonic() + timeout_s
