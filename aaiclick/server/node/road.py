"""The ASGI application of `/api/v1/node`: it checks version, token and body of a call, and writes its answer.

Plain functions, without FastAPI: workers call often, and what they say is checked by msgspec as it is decoded.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from aaiclick import __version__
from aaiclick.backoff import one_line
from aaiclick.config import settings
from aaiclick.errors import AaiclickError, InputError, NotAllowed, NotAuthenticated
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.coordinator.http.protocol import (
    GZIP,
    JSON,
    LOG_PIECE_BYTES_MAX,
    MSGPACK,
    PACKED_FROM,
    PREFIX,
    VERSION_HEADER,
    VERSIONS,
    packed,
    read,
    unpacked,
    written,
)
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.rules.validation import escape_for_terminal, mask_secrets
from aaiclick.orchestration.store.rejections import is_duplicate, is_rejected
from aaiclick.server.auth.middleware import bearer
from aaiclick.server.node.database_room import Busy, DatabaseRoom
from aaiclick.server.node.log_pieces import PATH as LOG_PATH
from aaiclick.server.node.log_pieces import piece_of
from aaiclick.server.node.node_tokens import NodeTokens
from aaiclick.server.node.verbs import LOG, VERBS, Desk, Verb
from aaiclick.server.problems import MEDIA_TYPE, status_of
from aaiclick.server.transport.connection_counts import KNOWN
from aaiclick.server.transport.request_bodies import whole_body

if TYPE_CHECKING:
    from aaiclick.server.node.data_proxy import DataProxy

BODY_BYTES_MAX = 64 * 2**20
"""Bytes of a call as it arrives."""

AUTH_FAILED_HEADER, AUTH_FAILED = "x-clickhouse-exception-code", "516"
"""How ClickHouse says that a login is refused."""

DATA = f"{PREFIX}data"


class NodeRoad:
    """The calls of workers to one server. Use it as an async context manager."""

    def __init__(self, coordinator: DirectCoordinator, ending: asyncio.Event) -> None:
        places = 2 * settings().sql_pool_size
        self.desk = Desk(coordinator, DatabaseRoom(places), ending)
        self.tokens = NodeTokens()
        self.data: DataProxy | None = None
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> NodeRoad:
        self._listening = asyncio.create_task(self.desk.board.listen(self.desk.coordinator.wait_for_hints))
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._listening is not None
        if self.data is not None:
            await self.data.close()
        self.desk.held.close()
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        headers = Headers(scope=scope)
        if scope["path"].rstrip("/") == DATA:
            await self._pass_on(scope, headers, receive, send)
            return
        media = MSGPACK if headers.get("accept", "").startswith(MSGPACK) else JSON
        try:
            body = written(await self._answer(scope, headers, receive), media)
            status, more = 200, {"content-type": media}
            if len(body) >= PACKED_FROM and GZIP in headers.get("accept-encoding", ""):
                body, more["content-encoding"] = packed(body), GZIP
        except (AaiclickError, HTTPException, Busy) as error:
            status, more, body = _refusal(error)
        listed = [(name.encode(), value.encode("latin-1")) for name, value in more.items()]
        range_said = b"%d-%d" % (VERSIONS.start, VERSIONS[-1])
        listed += [(b"content-length", b"%d" % len(body)), (VERSION_HEADER.lower().encode(), range_said)]
        await send({"type": "http.response.start", "status": status, "headers": listed})
        await send({"type": "http.response.body", "body": body})

    async def _pass_on(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Pass a statement on to ClickHouse. The driver knows from a header that it needs a newer token."""
        try:
            state = scope.setdefault("state", {})
            token = state["token"] = await self.tokens.of(bearer(headers))
            if KNOWN in state:
                state[KNOWN]()
            if token.role != Role.WORKER or token.node_id is None:
                raise NotAllowed(what="This", cause="the token is bound to no node", hint="")
            from aaiclick.server.node.data_proxy import DataProxy  # here: it loads ClickHouse's clients

            self.data = self.data or DataProxy()
            await self.data(scope, receive, send)
        except (AaiclickError, HTTPException) as error:
            status, more, body = _refusal(error)
            if isinstance(error, NotAuthenticated):
                more[AUTH_FAILED_HEADER] = AUTH_FAILED
            listed = [(name.encode(), value.encode("latin-1")) for name, value in more.items()]
            listed.append((b"content-length", b"%d" % len(body)))
            await send({"type": "http.response.start", "status": status, "headers": listed})
            await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive) -> object:
        run = LOG_PATH.fullmatch(scope["path"].removeprefix(PREFIX.rstrip("/")))
        verb = LOG if run is not None else VERBS.get(scope["path"].rpartition("/")[2])
        if verb is None:
            raise HTTPException(404, "There is no such verb of workers.")
        method = "POST" if run is None else "PUT"
        if scope["method"] != method:
            raise HTTPException(405, f"Workers {method} here.", {"Allow": method})
        _check_version(headers)
        state = scope.setdefault("state", {})
        token = state["token"] = await self.tokens.of(bearer(headers))
        if KNOWN in state:
            state[KNOWN]()
        _check_role(token, verb, scope["path"])
        body = await whole_body(headers, receive, BODY_BYTES_MAX if run is None else LOG_PIECE_BYTES_MAX)
        if headers.get("content-encoding") == GZIP:
            body = unpacked(body)
        media = headers.get("content-type", "").partition(";")[0].strip()
        asked = read(body, media, verb.asks) if run is None else piece_of(run, _query(scope), body)
        try:
            await self.desk.rights.check(token, asked)
            if verb.holds:
                return await self._held(verb.answer(self.desk, token, asked), receive)
            async with self.desk.room.place(urgent=verb.urgent):
                return await verb.answer(self.desk, token, asked)
        except (AaiclickError, HTTPException, Busy):
            raise
        except Exception as error:  # numbers and texts that no column holds
            if isinstance(error, OverflowError) or (is_rejected(error) and not is_duplicate(error)):
                rule = f"the database refuses it: {one_line(error)[:300]}"
                raise InputError(field="body", value=f"{len(body)} bytes", rule=rule, hint="") from error
            raise

    async def _held(self, answer: Awaitable[object], receive: Receive) -> object:
        """Answer a call that may wait, and give it up when its connection ends: what it would get would be lost."""
        answering = asyncio.ensure_future(answer)
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait([answering, gone], return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            raise HTTPException(408, "The connection has ended.")  # nobody reads this
        finally:
            gone.cancel()
            answering.cancel()


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), max_num_fields=20))


def _check_version(headers: Headers) -> None:
    """Raise HTTPException 426 unless the caller speaks a version that this server understands."""
    said = headers.get(VERSION_HEADER, "")
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 9 else 0
    if number in VERSIONS:
        return
    told = f"version {number}" if number else "none"
    understood = f"{VERSIONS.start} to {VERSIONS[-1]}"
    detail = (
        f"This server (aaiclick {__version__}) understands versions {understood} of the protocol for workers, and was "
        f"told {told} in {VERSION_HEADER}. Install aaiclick {__version__} on the worker's machine"
        f"{', or a newer one on the server' if number >= VERSIONS.stop else ''}."
    )
    raise HTTPException(HTTPStatus.UPGRADE_REQUIRED, detail, {"Upgrade": "aaiclick-node"})


def _check_role(token: Token, verb: Verb, path: str) -> None:
    if verb.for_runs and token.role == Role.WORKER:
        return
    if verb.role is not None and not token.role.may(verb.role):
        cause, hint = f"it needs the role {verb.role}, and the token's is {token.role}", "Ask with another token."
        raise NotAllowed(what=f"POST {path}", cause=cause, hint=hint)


def _refusal(error: AaiclickError | HTTPException | Busy) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of a refusal: a problem, from which the caller makes the same error again."""
    headers = {"content-type": MEDIA_TYPE}
    body: dict[str, Any] = {}
    if isinstance(error, Busy):
        status, kind = HTTPStatus.SERVICE_UNAVAILABLE, "Busy"
        headers["retry-after"] = str(math.ceil(error.again_s))
    elif isinstance(error, HTTPException):
        status, kind = HTTPStatus(error.status_code), HTTPStatus(error.status_code).phrase.replace(" ", "")
        headers |= {name.lower(): value for name, value in (error.headers or {}).items()}
    else:
        status, kind = HTTPStatus(status_of(error)), type(error).__name__
        body = {"error": kind, "facts": error.facts}
        if status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = 'Bearer realm="aaiclick"'
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers["retry-after"] = "2"
    detail = str(error.detail) if isinstance(error, HTTPException) else str(error)
    body |= {
        "type": f"urn:aaiclick:problem:{kind}",
        "title": status.phrase,
        "status": int(status),
        "detail": escape_for_terminal(mask_secrets(detail)),
    }
    return int(status), headers, json.dumps(body, default=_plain).encode()


def _plain(fact: object) -> str:
    return str(fact)[:500]
