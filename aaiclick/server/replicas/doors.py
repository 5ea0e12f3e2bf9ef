"""What stands before the routes of a replica: what it answers, passes on and refuses."""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aaiclick.errors import NotYetHere, ReadOnlyReplica, ReplicaNotReady
from aaiclick.server.event_positions import SEQ_HEADER, without_min_seq
from aaiclick.server.replicas.passing import QUERY, Passing, is_elsewhere
from aaiclick.server.replicas.progress import Progress
from aaiclick.server.transport.access_log import shown_path

MIN_SEQ_S_MAX = 5.0
"""Seconds for which a replica waits for an event that is asked for."""

LAG_HEADER = b"aaiclick-lag-ms"
"""How old an answer may be."""

ITSELF = frozenset({"/healthz", "/readyz", "/metrics", "/api/v1/health", "/api/v1/openapi.json"})
"""Paths that a replica answers before its first copy is complete."""


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
        scope, seq = without_min_seq(scope)
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
