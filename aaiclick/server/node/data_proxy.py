"""`/api/v1/node/data`: ClickHouse for nodes that cannot reach it, over this server, with the token of the node.

A request is passed on to ClickHouse, or to the gateway of the embedded engine, with the login of the server's settings;
bodies and answers are streamed. Files and addresses, as in `file` and `url`, are closed at the gateway for it; what a
ClickHouse server allows is up to the user in AAICLICK_NODE_CH_URL.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from aaiclick.config import settings
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.clients.servers import hosts_of
from aaiclick.data.embedded.directory_lock import find_gateway
from aaiclick.data.gateway.exchange import FILES_HEADER
from aaiclick.errors import DataUnreachable

PATH = "/api/v1/node/data"

CONNECT_S_MAX = 10.0
PIECE_BYTES = 256 * 1024
HEAD_BYTES_MAX = 1 << 20

PASSED_ON = ("content-type", "content-encoding", "content-length", "accept-encoding", "accept", "user-agent")
"""Headers of requests; logins are left out, as are those of the connection."""

PASSED_BACK = (b"content-type", b"content-encoding", b"date", b"timezone")
"""Headers of answers, besides those that begin with `x-clickhouse-`."""

OWN = frozenset({"user", "password", "database", "quota_key", "role"})
"""Parameters that the server sets itself."""


class Upstream(NamedTuple):
    """A connection to ClickHouse, and what to say there."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    login: str
    database: str


class DataProxy:
    """Passes on the statements of nodes."""

    def __init__(self) -> None:
        self._open_url = ""

    async def close(self) -> None:
        """Close what keeps the engine open."""
        if self._open_url:
            await close_client(self._open_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whose token was checked."""
        if scope["method"] not in ("GET", "POST", "HEAD"):
            raise HTTPException(405, "Statements are sent with POST.", {"Allow": "GET, HEAD, POST"})
        upstream = await self._connect()
        sending: asyncio.Task[None] | None = None
        try:
            headers = Headers(scope=scope)
            upstream.writer.write(_head(scope, headers, upstream))
            sending = asyncio.create_task(_pass_on(receive, upstream.writer, chunked=_is_chunked(scope, headers)))
            await _pass_back(scope, upstream.reader, send)
        finally:
            if sending is not None:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
            upstream.writer.transport.abort()

    async def _connect(self) -> Upstream:
        url = settings().node_ch_url or settings().ch_url
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                if url.startswith("chdb://"):
                    return await self._connect_to_gateway(url)
                return await _connect_to_server(url)
        except (OSError, TimeoutError) as error:
            raise DataUnreachable(cause=str(error) or "it does not answer in time") from error

    async def _connect_to_gateway(self, url: str) -> Upstream:
        if not self._open_url:
            await open_client(url)  # so that there is an owner, and stays one
            self._open_url = url
        directory = Path(url.removeprefix("chdb://"))
        endpoint = await asyncio.to_thread(find_gateway, directory, CONNECT_S_MAX, expected=True)
        if endpoint is None:
            raise DataUnreachable(cause=f"nobody serves the engine in {directory}")
        login = f"{endpoint.user}:{endpoint.password}"
        if endpoint.socket is not None:
            opened = await asyncio.open_unix_connection(str(endpoint.socket), limit=HEAD_BYTES_MAX)
        else:
            parts = urlsplit(endpoint.url)
            opened = await asyncio.open_connection(parts.hostname, parts.port, limit=HEAD_BYTES_MAX)
        return Upstream(*opened, login, "")


async def _connect_to_server(url: str) -> Upstream:
    """Connect to the first host of an address that answers."""
    parts, trouble = urlsplit(url), OSError("no host")
    login = parts.netloc.rpartition("@")[0] or "default:"
    user, _, password = login.partition(":")
    database = unquote(parts.path.lstrip("/"))
    for host in hosts_of(url):
        try:
            opened = await asyncio.open_connection(host.name, host.port, limit=HEAD_BYTES_MAX)
        except OSError as error:
            trouble = error
            continue
        return Upstream(*opened, f"{unquote(user)}:{unquote(password)}", database)
    raise trouble


def _is_chunked(scope: Scope, headers: Headers) -> bool:
    return scope["method"] == "POST" and "content-length" not in headers


def _head(scope: Scope, headers: Headers, upstream: Upstream) -> bytes:
    """Return the head of the request as it goes to ClickHouse."""
    asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    params = [(name, value) for name, value in asked if name not in OWN]
    if upstream.database:
        params.append(("database", upstream.database))
    passed = [f"{name}: {headers[name]}" for name in PASSED_ON if name in headers]
    if _is_chunked(scope, headers):
        passed.append("transfer-encoding: chunked")
    login = b64encode(upstream.login.encode()).decode()
    fixed = ["host: localhost", f"authorization: Basic {login}", f"{FILES_HEADER}: 0", "connection: close"]
    line = f"{scope['method']} /?{urlencode(params)} HTTP/1.1"
    return "\r\n".join([line, *fixed, *passed, "", ""]).encode("latin-1")


async def _pass_on(receive: Receive, writer: asyncio.StreamWriter, *, chunked: bool) -> None:
    """Pass on the body; if the node's connection ends, end that to ClickHouse, which stops the statement."""
    more = True
    try:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                writer.transport.abort()
                return
            if not more:
                continue
            data, more = message.get("body", b""), message.get("more_body", False)
            if data:
                writer.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
            if not more and chunked:
                writer.write(b"0\r\n\r\n")
            await writer.drain()
    except OSError:  # ClickHouse has answered already, and reads no more
        return


async def _pass_back(scope: Scope, reader: asyncio.StreamReader, send: Send) -> None:
    """Pass back the answer. An answer that is cut off is cut off for the node too: an exception ends its connection."""
    try:
        status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
        while status < 200:
            status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError) as error:
        raise DataUnreachable(cause=f"the connection ended before an answer: {error}") from error
    passed = [
        (name, value) for name, value in headers.items() if name in PASSED_BACK or name.startswith(b"x-clickhouse-")
    ]
    await send({"type": "http.response.start", "status": status, "headers": passed})
    if scope["method"] != "HEAD" and status != 204:
        async for piece in _body(reader, headers):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _read_head(head: bytes) -> tuple[int, dict[bytes, bytes]]:
    first, *lines = head[:-4].split(b"\r\n")
    pairs = (line.partition(b":") for line in lines)
    return int(first.split(b" ", 2)[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _body(reader: asyncio.StreamReader, headers: dict[bytes, bytes]) -> AsyncIterator[bytes]:
    """Yield an answer's body; raise IncompleteReadError if it ends too early."""
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            async for piece in _exactly(reader, size):
                yield piece
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":  # trailers
            pass
    elif b"content-length" in headers:
        async for piece in _exactly(reader, int(headers[b"content-length"])):
            yield piece
    else:
        while piece := await reader.read(PIECE_BYTES):
            yield piece


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        piece = await reader.read(min(size, PIECE_BYTES))
        if not piece:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(piece)
        yield piece
