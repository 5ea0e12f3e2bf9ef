"""One HTTP request over a connection of its own, which can be cancelled at any time; redirects are not followed."""

from __future__ import annotations

import asyncio
import http.client
import io
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message

from aaiclick import __version__
from aaiclick.errors import InputError
from aaiclick.executors.addresses import Place, find_place
from aaiclick.orchestration.rules.validation import shorten

HEAD_BYTES_MAX = 64 * 1024
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_NO_BODY = frozenset({204, 304})


class BrokenAnswer(OSError):
    """The answer of a server is no HTTP, or breaks off."""


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    status: int
    headers: Message
    body: bytes

    @property
    def text(self) -> str:
        charset = self.headers.get_content_charset("utf-8")
        try:
            return self.body.decode(charset, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


async def call(request: Request, *, timeout_s: float, bytes_max: int) -> Response:
    """Send a request and return the answer.

    Raises TimeoutError, OSError if the server cannot be reached or breaks off, and NotAllowed for a place that may not
    be called. An answer with a body of more than `bytes_max` bytes breaks off too.
    """
    async with asyncio.timeout(timeout_s):
        place = await find_place(request.url)
        reader, writer = await _connect(place)
        try:
            writer.write(_head(request, place) + request.body)
            await writer.drain()
            return await _answer(reader, request.method, bytes_max)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise BrokenAnswer(f"the answer breaks off: {error}") from error
        finally:
            writer.transport.abort()


async def _connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first of the host's addresses that answers: to these only, they have been checked."""
    secure = place.url.scheme == "https"
    context, name = (ssl.create_default_context(), place.host) if secure else (None, None)
    refused: OSError = OSError("the host has no address")
    for ip in place.ips:
        try:
            return await asyncio.open_connection(
                ip, place.port, ssl=context, server_hostname=name, limit=HEAD_BYTES_MAX
            )
        except ssl.SSLError:
            raise
        except OSError as error:
            refused = error
    raise refused


def _head(request: Request, place: Place) -> bytes:
    given = {name.lower() for name in request.headers}
    fields = dict(request.headers)
    if "host" not in given:
        fields["Host"] = place.host_header
    if "user-agent" not in given:
        fields["User-Agent"] = f"aaiclick/{__version__}"
    if "accept" not in given:
        fields["Accept"] = "*/*"
    if request.body or request.method in ("PATCH", "POST", "PUT"):
        fields["Content-Length"] = str(len(request.body))
    fields["Connection"] = "close"
    lines = [f"{request.method} {place.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    try:
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")
    except UnicodeEncodeError:
        rule = "headers are ASCII"
        raise InputError(field="headers", value="a character", rule=rule, hint="Encode it.") from None


def check_header(name: object, value: object) -> None:
    """Raise InputError for a header that could begin another one."""
    if not isinstance(name, str) or not name.isascii() or not name or set(name) & set(" :\r\n\t\x00"):
        raise InputError(field="headers", value=shorten(name), rule="names of headers have no blanks", hint="")
    if name.lower() in ("content-length", "transfer-encoding", "connection"):
        raise InputError(field="headers", value=shorten(name), rule="this header is set by aaiclick", hint="")
    if not isinstance(value, str) or set(value) & set("\r\n\x00"):
        raise InputError(field="headers", value=name, rule="values of headers are texts of one line", hint="")


# ---------------------------------------------------------------- the answer


async def _answer(reader: asyncio.StreamReader, method: str, bytes_max: int) -> Response:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        status = _status(line)
        if status >= 200:  # others are interim
            break
    with suppress(http.client.HTTPException):
        headers: Message = http.client.parse_headers(io.BytesIO(rest))
        if method == "HEAD" or status in _NO_BODY:
            return Response(status, headers, b"")
        return Response(status, headers, await _body(reader, headers, bytes_max))
    raise BrokenAnswer("the answer has headers that cannot be read")


def _status(line: bytes) -> int:
    parts = line.split(b" ", 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not (parts[1].isdigit() and len(parts[1]) == 3):
        raise BrokenAnswer("what answers does not speak HTTP/1.1")
    return int(parts[1])


async def _body(reader: asyncio.StreamReader, headers: Message, bytes_max: int) -> bytes:
    if headers.get("Transfer-Encoding", "").lower().strip() == "chunked":
        return await _chunks(reader, bytes_max)
    length = headers.get("Content-Length", "").strip()
    if length.isascii() and length.isdigit():
        _check_size(int(length), bytes_max)
        return await reader.readexactly(int(length))
    found = bytearray()
    while chunk := await reader.read(HEAD_BYTES_MAX):
        found += chunk
        _check_size(len(found), bytes_max)
    return bytes(found)


async def _chunks(reader: asyncio.StreamReader, bytes_max: int) -> bytes:
    found = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        digits = line.split(b";")[0].strip()
        try:
            size = int(digits, 16)
        except ValueError:
            raise BrokenAnswer("the answer has a chunk without a size") from None
        _check_size(len(found) + max(size, 0), bytes_max)
        if size <= 0:
            break
        found += (await reader.readexactly(size + 2))[:-2]
    return bytes(found)


def _check_size(size: int, bytes_max: int) -> None:
    if size > bytes_max:
        raise BrokenAnswer(f"the answer has more than {bytes_max} bytes (AAICLICK_BLOB_BYTES_MAX)")
