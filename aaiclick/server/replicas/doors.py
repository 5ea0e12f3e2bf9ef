"""What stands before the routes of a server: `min_seq`, and at a replica, what it answers, passes on and refuses."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aaiclick.backoff import one_line
from aaiclick.errors import InputError, NotYetHere, ReadOnlyReplica, ReplicaNotReady
from aaiclick.orchestration.queries.event_feed import newest_event
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.server.replicas.passing import QUERY, Passing, is_elsewhere
from aaiclick.server.replicas.progress import Progress
from aaiclick.server.transport.access_log import shown_path

MIN_SEQ = "min_seq"
MIN_SEQ_S_MAX = 5.0
"""Seconds for which a replica waits for an event that is asked for."""

SEQ_HEADER, LAG_HEADER = b"aaiclick-as-of-seq", b"aaiclick-lag-ms"
"""Up to which event an answer shows everything, and how old it may be."""

log = logging.getLogger("aaiclick.server")

API = "/api/v1/"
ITSELF = frozenset({"/healthz", "/readyz", "/metrics", "/api/v1/health", "/api/v1/openapi.json"})
"""Paths that a replica answers before its first copy is complete."""


class CoordinatorDoor:
    """At a coordinator: changes are answered with the newest event, which a replica can be asked to have."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(API):
            await self.app(scope, receive, send)
            return
        if scope["method"] == "GET":
            scope, seq = _without_min_seq(scope)
            if seq is not None and seq > (newest := await newest_event()):
                hint = "It is the id of an event of another database, or of before this one was restored."
                raise NotYetHere(min_seq=seq, as_of_seq=newest, lag_ms=0, hint=hint)
            await self.app(scope, receive, send)
            return

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and 200 <= message["status"] < 300:
                try:
                    seq = str(await newest_event()).encode()
                    message["headers"] = [*message["headers"], (SEQ_HEADER, seq)]
                except Exception as error:  # the change was made: its answer must not be lost
                    log.warning("the newest event is not known: %s", one_line(error))
            await send(message)

        await self.app(scope, receive, tell)


class ReplicaDoor:
    """At a replica."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state: Any = scope["app"].state
        progress: Progress = state.replica
        if scope["method"] != "GET" and not (scope["method"] == "POST" and QUERY.fullmatch(scope["path"])):
            raise read_only(scope, progress)
        scope, seq = _without_min_seq(scope)
        if seq is not None and not await progress.reaches(seq, MIN_SEQ_S_MAX):
            hint = f"Ask again, or ask the coordinator at {progress.coordinator}."
            raise NotYetHere(min_seq=seq, as_of_seq=progress.as_of_seq, lag_ms=progress.lag_ms, hint=hint)
        if is_elsewhere(scope):
            passing: Passing = state.passing
            await passing(scope, receive, send)
            return
        if not progress.is_whole and scope["path"] not in ITSELF:
            cause = progress.trouble or f"it is at {progress.state.looking or 'its beginning'}"
            raise ReplicaNotReady(coordinator=progress.coordinator, cause=cause)
        told = ((SEQ_HEADER, progress.as_of_seq), (LAG_HEADER, progress.lag_ms))  # before anything is read

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((name, str(value).encode()) for name, value in told)]
            await send(message)

        await self.app(scope, receive, tell)


class NoNodes:
    """At a replica, in place of the road of workers."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise read_only(scope, self._progress)


def read_only(scope: Scope, progress: Progress) -> ReadOnlyReplica:
    """Return the error for what only the coordinator does."""
    return ReadOnlyReplica(method=scope["method"], path=shown_path(scope["path"]), coordinator=progress.coordinator)


def _without_min_seq(scope: Scope) -> tuple[Scope, int | None]:
    """Return a request without the parameter `min_seq`, which no route knows, and its value; raise InputError."""
    if MIN_SEQ.encode() not in scope["query_string"]:
        return scope, None
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    given = [value for name, value in pairs if name == MIN_SEQ]
    if not given:
        return scope, None
    text = given[0]
    if len(given) > 1 or not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < 2**63):
        raise InputError(field=MIN_SEQ, value=shorten(text), rule="it must be the id of one event", hint="")
    rest = [(name, value) for name, value in pairs if name != MIN_SEQ]
    return {**scope, "query_string": urlencode(rest).encode("latin-1")}, int(text)
