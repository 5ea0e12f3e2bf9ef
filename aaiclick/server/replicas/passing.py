"""What a replica does not have, asked of its coordinator with the caller's token, and passed back as it arrives."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from urllib.parse import parse_qsl, quote

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from aaiclick.orchestration.coordinator.http.connection import Connection, NoConnection
from aaiclick.server.replicas.callers import away
from aaiclick.server.replicas.progress import Progress
from aaiclick.server.transport.access_log import shown_path
from aaiclick.server.transport.request_bodies import whole_body
from aaiclick.server_address import Address

BODY_BYTES_MAX = 2**20

HEAD_S_MAX = 60.0
"""Seconds for which the coordinator is waited for; then it counts as away."""

ELSEWHERE = re.compile(
    r"/api/v1/(?:jobs/[^/]+/result(?:/arrow)?|tasks/[^/]+/(?:logs|pending)|objects(?:/.*)?|cache|resources|audit)"
)
"""Paths of values, logs and Objects; of what waits in queues; of remembered results, resources and the audit."""

QUERY = re.compile(r"/api/v1/objects/[^/]+/query")
"""It is sent with POST, but only reads."""

BROKEN = (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError, ValueError)
"""What streams raise when a connection ends, or when what arrives is no answer."""

log = logging.getLogger("aaiclick.server")

PASSED_ON = ("authorization", "accept", "content-type", "if-none-match", "last-event-id", "user-agent")
PASSED_BACK = ("content-type", "etag", "cache-control", "retry-after", "www-authenticate", "x-accel-buffering")


def is_elsewhere(scope: Scope) -> bool:
    """Return whether the coordinator has to be asked for this."""
    path = scope["path"].rstrip("/")
    if ELSEWHERE.fullmatch(path):
        return True
    return path == "/api/v1/tasks" and "blocked" in dict(parse_qsl(scope["query_string"].decode("latin-1")))


class Passing:
    """Passes requests on to one coordinator."""

    def __init__(self, addresses: list[Address], secured: ssl.SSLContext | None, progress: Progress) -> None:
        self._addresses, self._secured, self._progress = addresses, secured, progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request as the coordinator does; raise CoordinatorAway."""
        body = await whole_body(Headers(scope=scope), receive, BODY_BYTES_MAX)
        address, connection = await self._connect()
        try:
            try:
                async with asyncio.timeout(HEAD_S_MAX):
                    _, status, headers = await connection.begin(scope["method"], *_request(scope, address), body)
            except BROKEN as error:
                raise away(self._progress, "This", error) from error
            passed = {name: value for name, value in headers.items() if name in PASSED_BACK or name.startswith("x-log")}
            listed = [(name.encode(), value.encode("latin-1")) for name, value in passed.items()]
            await send({"type": "http.response.start", "status": status, "headers": listed})
            try:
                await _pass_back(connection, status, headers, receive, send)
            except BROKEN as error:  # whoever reads notices that the answer is incomplete
                log.warning("%s %s was cut off: %s", scope["method"], shown_path(scope["path"]), error)
        finally:
            connection.close()

    async def _connect(self) -> tuple[Address, Connection]:
        trouble: Exception | None = None
        for address in self._addresses:
            try:
                return address, await Connection.open(address, self._secured)
            except NoConnection as error:
                trouble = error
        assert trouble is not None, "a coordinator has an address"
        raise away(self._progress, "This", trouble) from trouble


def _request(scope: Scope, address: Address) -> tuple[str, bytes]:
    """Return the target and the headers of a request as it goes to the coordinator."""
    query = scope["query_string"].decode("latin-1")
    target = address.path + quote(scope["path"], safe="/:@!$&'()*+,;=~-._") + ("?" + query if query else "")
    headers = Headers(scope=scope)
    lines = [f"{name}: {headers[name]}" for name in PASSED_ON if name in headers]
    return target, "".join(f"{line}\r\n" for line in [f"host: {address.named}", *lines]).encode("latin-1")


async def _pass_back(
    connection: Connection, status: int, headers: dict[str, str], receive: Receive, send: Send
) -> None:
    """Pass the body back, until it ends or its reader is gone. Cut off at the coordinator, it is cut off here."""
    gone = asyncio.ensure_future(_gone(receive))
    parts = connection.parts(status, headers)
    try:
        while True:
            part = asyncio.ensure_future(anext(parts, None))
            await asyncio.wait([part, gone], return_when=asyncio.FIRST_COMPLETED)
            if not part.done():
                part.cancel()
                await asyncio.gather(part, return_exceptions=True)
                return
            found = part.result()
            await send({"type": "http.response.body", "body": found or b"", "more_body": found is not None})
            if found is None:
                return
    finally:
        gone.cancel()
        await parts.aclose()


async def _gone(receive: Receive) -> None:
    """Wait until the reader has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
