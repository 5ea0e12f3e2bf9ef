"""Write HTTP/1.1: an answer of known length, or one in chunks."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from http import HTTPStatus

Headers = dict[str, str]

JOINED_BYTES_MAX = 1 << 16
"""A body up to this size is sent in one call with its head."""


class Reply:
    """The answer to one request.

    After `fail_midway`, or if the body was not read to its end, the connection cannot be used again.
    """

    def __init__(self, connection: socket.socket, *, keep_alive: bool, version: str) -> None:
        self._connection = connection
        self._chunks = version == "HTTP/1.1"
        self.keep_alive = keep_alive
        self.started = False
        self._working = False
        self._lock = threading.Lock()

    def invite(self) -> None:
        """Tell a client that sent «Expect: 100-continue» to send its body."""
        self._connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def say_working(self) -> None:
        """Begin the head, and keep it open, to tell the client that the query runs. Called by another thread.

        ClickHouse does the same. An error that follows has the status 200, and its code in a header.
        """
        with self._lock:
            if self.started:
                return
            begin = b"" if self._working else b"HTTP/1.1 200 OK\r\n"
            self._working = True
            try:
                self._connection.sendall(begin + b"X-ClickHouse-Progress: {}\r\n")
            except OSError:
                return  # the thread that serves this client will notice

    def send(
        self, status: int, headers: Headers, body: Iterable[bytes], length: int, *, with_body: bool = True
    ) -> None:
        """Send the whole answer."""
        head = self._head(status, {**headers, "Content-Length": str(length)})
        if not with_body:
            body = ()
        elif length <= JOINED_BYTES_MAX:
            head, body = head + b"".join(body), ()
        self._connection.sendall(head)
        for piece in body:
            self._connection.sendall(piece)

    def start(self, headers: Headers) -> None:
        """Begin an answer of unknown length."""
        if self._chunks:
            headers = {**headers, "Transfer-Encoding": "chunked"}
        else:
            self.keep_alive = False
        self._connection.sendall(self._head(200, headers))

    def write(self, piece: bytes) -> None:
        """Send a piece of the answer that was begun."""
        if piece:
            self._connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunks else piece)

    def end(self) -> None:
        """End the answer that was begun."""
        if self._chunks:
            self._connection.sendall(b"0\r\n\r\n")

    def fail_midway(self, piece: bytes) -> None:
        """Send a last piece and no end: a client that cannot read the piece still sees that the answer broke off."""
        self.keep_alive = False
        self.write(piece)

    def _head(self, status: int, headers: Headers) -> bytes:
        with self._lock:
            self.started = True
        lines = [] if self._working else [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Connection: {'keep-alive' if self.keep_alive else 'close'}", "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace")
