"""The ASGI middleware of every request: head limits, Host and Origin, token, quota and body; then errors as answers."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Collection
from contextlib import ExitStack
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aaiclick.config import settings
from aaiclick.errors import AaiclickError, NotAllowed, NotAuthenticated
from aaiclick.orchestration.access.tokens import MAKE_ONE
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.rules.validation import escape_for_terminal
from aaiclick.orchestration.store.connecting import explain
from aaiclick.server.auth.token_quotas import PLACE, TokenQuotas
from aaiclick.server.problems import fault, problem_of, refusal
from aaiclick.server.transport.access_log import shown_path
from aaiclick.server.transport.connection_counts import KNOWN
from aaiclick.server.transport.encoded_slashes import with_stand_ins
from aaiclick.server.transport.request_bodies import BODY_ROOM_BYTES, read_body
from aaiclick.server.transport.request_heads import check_head
from aaiclick.telemetry.fields import about

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no token; their answers say only yes or no."""

NODE = "/api/v1/node/"
"""Paths of workers, whose calls may wait for long: they have a road of their own."""
CALLBACKS = "/api/v1/callbacks/"
"""Paths that need no token, because one is in them."""

CALLERS = 0
"""Stands in quotas for all who call back, in place of the id of a token."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})

REQUESTS_MAX, REQUESTS_EACH, REQUESTS_KEPT, REQUESTS_FEW = 200, 64, 40, 8
"""Concurrent requests: in all, per token, the number kept back, and how many a token may have to get one of those."""

SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)

log = logging.getLogger("aaiclick.server")


class AuthMiddleware:
    """Checks every request before a route reads it, and turns exceptions into answers."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str] = ()) -> None:
        self.app = app
        self.hosts = frozenset(hosts) | LOOPBACK
        self.places = TokenQuotas("requests under way", REQUESTS_MAX, REQUESTS_EACH, REQUESTS_KEPT, REQUESTS_FEW)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # web sockets are not supported
            await send({"type": "websocket.close", "code": 1008})
            return
        # the database connection is in the context variables of the lifespan: each request runs in a copy of these
        around: contextvars.Context = scope["app"].state.surroundings
        await asyncio.create_task(self._enter(scope, receive, send), context=around.copy())

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":  # answered like GET, without the body
            scope, send = {**scope, "method": "GET"}, _head_of(send)
        begun = False

        async def tell(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                scope["app"].state.refusals.note(message["status"], scope.get("state", {}).get("token"))
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in SAFE_HEADERS if pair[0] not in given)]
            await send(message)

        try:
            with ExitStack() as place:
                if scope["path"].startswith(NODE):
                    check_head(scope)
                    check_host(Headers(scope=scope), self.hosts)
                    await scope["app"].state.node(scope, receive, tell)  # it checks tokens and bodies by itself
                    return
                brought = await self._check(scope, receive, place)
                await self.app(with_stand_ins(scope), brought, tell)
        except (AaiclickError, HTTPException) as error:
            if begun:
                raise
            await refusal(error)(scope, receive, tell)
        except Exception as error:
            known = explain(error, settings().sql_url)
            if known is None:
                path = shown_path(scope["path"])  # escaped, so that it cannot begin a new log line
                log.exception("%s %s failed", scope["method"], path, extra=about(**_named(scope)))
            if not begun:
                await (fault() if known is None else problem_of(known))(scope, receive, tell)

    async def _check(self, scope: Scope, receive: Receive, place: ExitStack) -> Receive:
        """Raise if the request is not allowed or its token has too many under way; return a `receive` with the body.

        The request's place in the quota is entered into `place`.
        """
        headers = Headers(scope=scope)
        check_head(scope)
        if scope["path"] in OPEN_PATHS:
            return receive
        check_host(headers, self.hosts)
        state = scope.setdefault("state", {})
        if scope["path"].startswith(CALLBACKS):
            holder = CALLERS
        else:
            token = state["token"] = await scope["app"].state.callers.authenticate(bearer(headers))
            if KNOWN in state:
                state[KNOWN]()
            if not token.role.may(Role.VIEWER):  # a worker's: whatever route there is or will be, it is not for these
                cause = f"it needs the role {Role.VIEWER}, and the token's is {token.role}"
                raise NotAllowed(what=f"{scope['method']} {shown_path(scope['path'])}", cause=cause, hint="")
            holder = token.id
        place.enter_context(self.places.of(holder))
        state[PLACE] = place
        return await read_body(headers, receive, settings().value_bytes_max + BODY_ROOM_BYTES)


def _head_of(send: Send) -> Send:
    """Return a `send` that passes on the start of an answer and ends it with an empty body."""

    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return tell


def _named(scope: Scope) -> dict[str, str]:
    """Return the ids in a path, such as those of the job, task or worker, for the fields of a log line."""
    return {
        name.removesuffix("_id"): escape_for_terminal(str(value))
        for name, value in scope.get("path_params", {}).items()
    }


def check_host(headers: Headers, hosts: Collection[str]) -> None:
    """Raise NotAllowed for an unknown Host (DNS rebinding), and for requests that pages of other sites make."""
    named = headers.getlist("host")
    host = named[0].lower() if len(named) == 1 else ""  # of two, a proxy might have used the other
    if host not in hosts and _without_port(host) not in hosts:
        hint = "Add the name to AAICLICK_SERVER_HOSTS."
        raise NotAllowed(what="This Host", cause="the server does not answer to that host name", hint=hint)
    if any(_host_of(origin) != host for origin in headers.getlist("origin")):
        raise NotAllowed(what="This Origin", cause="pages of other sites may not send requests", hint="")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise NotAllowed(what="This request", cause="pages of other sites may not send requests", hint="")


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # such as http://[
        return None


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdecimal() else host


def bearer(headers: Headers) -> str:
    """Return the token of the Authorization header; raise NotAuthenticated if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise NotAuthenticated(cause="there is none", hint=f"Send it as Authorization: Bearer TOKEN. {MAKE_ONE}")
    return token.strip()
