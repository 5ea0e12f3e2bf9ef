"""Read HTTP/1.1: the head and the body of a request, with limits on both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote

URL_BYTES_MAX = 1 << 20
HEADERS_BYTES_MAX = 1 << 16
HEADERS_MAX = 200
CHUNK_LINE_BYTES_MAX = 1 << 10
LENGTH_DIGITS_MAX = 18
ONCE = ("content-length", "transfer-encoding", "authorization", "expect")
"""Headers that may occur once in a request: of two values, it is unclear which one counts."""

PARAMS_MAX = 4096
PIECE_BYTES = 1 << 20
_HEX = re.compile(rb"[0-9A-Fa-f]{1,15}")


class BadRequest(Exception):
    """A malformed request; the connection is closed after the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class BodyBroken(Exception):
    """The connection ended within the body: there is no client to answer."""


@dataclass(frozen=True)
class Head:
    """The first line and the headers of a request; names of headers are in lower case."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    version: str

    @property
    def keep_alive(self) -> bool:
        """Return whether the client may send more requests on this connection."""
        wish = self.headers.get("connection", "").lower()
        return "close" not in wish if self.version == "HTTP/1.1" else "keep-alive" in wish


def read_head(reader: BinaryIO) -> Head | None:
    """Return the head of the next request; None if the client has closed the connection."""
    line = _read_line(reader, URL_BYTES_MAX, 414)
    if not line:
        return None
    parts = line.decode("latin-1").split()
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(400, "This is not a request of HTTP/1.1.")
    path, _, query = parts[1].partition("?")
    return Head(parts[0], unquote(path), _params(query), _read_headers(reader), parts[2])


def _params(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape", max_num_fields=PARAMS_MAX)
    except ValueError:
        raise BadRequest(400, f"There are more than {PARAMS_MAX} parameters.") from None
    return dict(pairs)


def _read_headers(reader: BinaryIO) -> dict[str, str]:
    headers: dict[str, str] = {}
    left = HEADERS_BYTES_MAX
    while line := _read_line(reader, left, 431):
        left -= len(line)
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or name != name.strip():
            raise BadRequest(400, "A header has no name or no colon.")
        name = name.lower()
        if len(headers) >= HEADERS_MAX:
            raise BadRequest(431, f"There are more than {HEADERS_MAX} headers.")
        if name in ONCE and name in headers:
            raise BadRequest(400, f"The header {name} is there twice.")
        headers[name] = value.strip()
    return headers


def _read_line(reader: BinaryIO, bytes_max: int, status: int) -> bytes:
    """Return a line without its end; it is empty also when the connection has ended."""
    line = reader.readline(bytes_max + 1)
    if len(line) > bytes_max:
        raise BadRequest(status, f"A line is longer than {bytes_max} bytes.")
    return line.rstrip(b"\r\n")


class Body:
    """The body of a request, in pieces; it can be read once.

    `invite` is called before the first byte is read, if the client waits for «100 Continue».
    """

    def __init__(self, reader: BinaryIO, head: Head, invite: Callable[[], None]) -> None:
        self._reader = reader
        self._expects = head.headers.get("expect", "").lower() == "100-continue"
        self._invite = invite
        length = head.headers.get("content-length")
        self._chunked = head.headers.get("transfer-encoding", "").lower() == "chunked"
        if "transfer-encoding" in head.headers and (not self._chunked or length is not None):
            raise BadRequest(400, "Where the body ends cannot be told.")
        if length is not None and not (length.isascii() and length.isdigit()):
            raise BadRequest(400, "The length of the body is not a number.")
        if length is not None and len(length) > LENGTH_DIGITS_MAX:
            raise BadRequest(413, f"The length of the body has more than {LENGTH_DIGITS_MAX} digits.")
        self._left = int(length or 0)
        self.finished = not self._chunked and self._left == 0

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes as they were sent, about a megabyte at a time."""
        if self.finished:
            return
        if self._expects:
            self._invite()
            self._expects = False
        yield from self._read_chunks() if self._chunked else self._read(self._left)
        self.finished = True

    def drain(self, bytes_max: int) -> None:
        """Read and drop the rest, up to `bytes_max`, so that a client that is still sending can read the answer."""
        if self._expects:  # without «100 Continue», the client sends no body
            return
        for piece in self.pieces():
            bytes_max -= len(piece)
            if bytes_max < 0:
                return

    def _read(self, count: int) -> Iterator[bytes]:
        while count:
            piece = self._reader.read(min(count, PIECE_BYTES))
            if not piece:
                raise BodyBroken
            count -= len(piece)
            self._left -= len(piece)
            yield piece

    def _read_chunks(self) -> Iterator[bytes]:
        while size := self._read_chunk_size():
            yield from self._read(size)
            if self._reader.read(2) != b"\r\n":
                raise BodyBroken
        _read_headers(self._reader)  # trailers

    def _read_chunk_size(self) -> int:
        line = self._reader.readline(CHUNK_LINE_BYTES_MAX)
        digits = line.partition(b";")[0].strip()
        if not line.endswith(b"\n"):
            raise BodyBroken
        if not _HEX.fullmatch(digits):
            raise BadRequest(400, "The size of a chunk is not a number.")
        return int(digits, 16)
