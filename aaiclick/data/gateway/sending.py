"""Send an answer: it is kept until it is complete, large or late; then it is sent in chunks while it is computed."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType

from aaiclick.data.gateway import formats
from aaiclick.data.gateway.faults import Fault
from aaiclick.data.gateway.http import codecs
from aaiclick.data.gateway.http.blocks import Blocks
from aaiclick.data.gateway.http.replies import Headers, Reply
from aaiclick.data.gateway.http.request_reader import Head
from aaiclick.data.gateway.queries import Counts, Outcome
from aaiclick.data.gateway.requests import flag, number

BUFFER_BYTES = 1 << 20
"""An answer up to this size is sent when it is complete: an error in it can still set the status."""

KEEP_S_MAX = 0.25
"""Rows are kept at most this long while their query goes on."""

MEMORY_BYTES_MAX = 1 << 25
"""An answer that must wait for its end is kept in memory up to this size, and then in a temporary file."""

_TO_LETTERS = str.maketrans("0123456789", "ghijklmnop")


class BrokenOff(Exception):
    """The answer broke off with an error, which the client was sent."""


class Sending:
    """The answer to a query: taken while the query runs, and ended when the engine's connection is free again."""

    def __init__(self, head: Head, headers: Headers, reply: Reply) -> None:
        self._head = head
        self._mark = secrets.token_hex(8).translate(_TO_LETTERS)
        self._headers = headers
        headers["X-ClickHouse-Exception-Tag"] = self._mark
        self._reply = reply
        self._counts = Counts()
        self._packer: codecs.Compressor = codecs.Plain()
        self._spool = SpooledTemporaryFile[bytes](max_size=MEMORY_BYTES_MAX)
        self._kept_since: float | None = None
        self._waits = True
        self._lock = threading.Lock()
        self._lost: OSError | None = None

    def __enter__(self) -> Sending:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._waits = True
            self._spool.close()

    def take(self, outcome: Outcome) -> None:
        """Take all pieces of an answer; some may be sent meanwhile, but not the end."""
        asked = flag(self._head, "enable_http_compression")
        encoding = codecs.choose(self._head.headers.get("accept-encoding", "")) if asked else ""
        self._packer, self._counts = codecs.compressor(encoding), outcome.counts
        if flag(self._head, "compress"):
            self._packer = codecs.Both(Blocks(), self._packer)
        self._headers |= _labels(outcome, encoding)
        bytes_max = int(number(self._head, "buffer_size", BUFFER_BYTES))
        self._waits = flag(self._head, "wait_end_of_query") or self._head.method == "HEAD"
        for piece in filter(None, outcome.pieces):
            with self._lock:
                self._add(piece, bytes_max)

    def end(self) -> None:
        """Send the rest. The session is free by now: the client may ask again as soon as it has the last byte."""
        with self._lock:
            self._check_connection()
            if self._reply.started:
                self._reply.write(self._packer.end())
                self._reply.end()
                return
            self._spool.write(self._packer.end())
            headers = {**self._headers, "X-ClickHouse-Summary": self._counts.as_json()}
            self._reply.send(200, headers, self._kept(), self._spool.tell(), with_body=self._head.method != "HEAD")

    def fail(self, found: Fault) -> None:
        """Send an error, however much of the answer has been sent; raise BrokenOff if some has."""
        with self._lock:
            self._check_connection()
            if self._reply.started:
                self._reply.fail_midway(self._packer.add(_trailer(found, self._mark)) + self._packer.end())
                raise BrokenOff
            said = f"{found}\n".encode("utf-8", "surrogateescape")
            headers = {name: self._headers[name] for name in self._headers if name not in _OF_ROWS}
            headers |= {"Content-Type": PLAIN, "X-ClickHouse-Exception-Code": str(found.code)}
            self._reply.send(found.status, headers, [said], len(said), with_body=self._head.method != "HEAD")

    def send_if_late(self) -> None:
        """Send rows that were kept long enough. Called by a thread that must not block, so another one sends them."""
        if self._is_late():
            threading.Thread(target=self._send_late, name="gateway late rows", daemon=True).start()

    def _send_late(self) -> None:
        with self._lock:
            if self._is_late():
                try:
                    self._start()
                except OSError as error:  # raised by the thread that serves this client
                    self._lost = error

    def _is_late(self) -> bool:
        since = self._kept_since
        if self._waits or since is None or self._reply.started:
            return False
        return time.monotonic() - since > KEEP_S_MAX

    def _add(self, piece: bytes, bytes_max: int) -> None:
        self._check_connection()
        if self._is_late():
            self._start()
        packed = self._packer.add(piece)
        if self._reply.started:
            self._reply.write(packed)
            return
        self._spool.write(packed)
        self._kept_since = self._kept_since or time.monotonic()
        if not self._waits and self._spool.tell() > bytes_max:
            self._start()

    def _start(self) -> None:
        self._reply.start({**self._headers, "X-ClickHouse-Summary": self._counts.as_json()})
        for kept in self._kept():
            self._reply.write(kept)

    def _kept(self) -> Iterator[bytes]:
        self._spool.seek(0)
        while piece := self._spool.read(BUFFER_BYTES):
            yield piece

    def _check_connection(self) -> None:
        if self._lost is not None:
            raise self._lost


PLAIN = "text/plain; charset=UTF-8"
_OF_ROWS = ("X-ClickHouse-Format", "Content-Encoding")


def _labels(outcome: Outcome, encoding: str) -> Headers:
    labels: Headers = {}
    if outcome.format is not None:
        labels |= {"Content-Type": formats.content_type(outcome.format), "X-ClickHouse-Format": outcome.format}
    if encoding:
        labels["Content-Encoding"] = encoding
    return labels


def _trailer(found: Fault, mark: str) -> bytes:
    """Return the end that ClickHouse gives an answer which fails after a part of it was sent."""
    said = str(found).encode("utf-8", "surrogateescape")
    tag = mark.encode()
    return b"\r\n__exception__\r\n%b\r\n%b\n%d %b\r\n__exception__\r\n" % (tag, said, len(said), tag)
