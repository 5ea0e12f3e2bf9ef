"""A network that answers what a test says, and notes what is asked and for how long is waited."""

from __future__ import annotations

import io
import ssl
from collections.abc import Sequence

from aaiclick.client.networks import NoConnection, Wire
from aaiclick.server_address import Address


class ScriptedWire:
    """Gives these bytes, then the end of the connection, or nothing in time."""

    def __init__(self, told: bytes, network: ScriptedNetwork, *, is_silent: bool = False) -> None:
        self._file, self._network, self._is_silent = io.BytesIO(told), network, is_silent
        self.timeout_s = 1.0
        self.closed = False

    async def readline(self) -> bytes:
        return self._got(self._file.readline())

    async def read(self, most: int) -> bytes:
        return self._got(self._file.read(most))

    def _got(self, data: bytes) -> bytes:
        if not data and self._is_silent:
            raise TimeoutError
        return data

    async def write(self, data: bytes) -> None:
        self._network.asked.append(data.decode())

    def is_stale(self) -> bool:
        return self._file.tell() == len(self._file.getvalue())

    def close(self) -> None:
        self.closed = True


class ScriptedNetwork:
    """Each connection has the next answers of a list; None is a connection that is refused."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.slept: list[float] = []
        self.wires: list[ScriptedWire] = []

    async def connect(self, address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> Wire:
        told = self.answers.pop(0) if self.answers else None
        if told is None:
            raise NoConnection("refused")
        self.wires.append(ScriptedWire(told, self))
        return self.wires[-1]

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def answered(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """An answer with a length."""
    lines: Sequence[str] = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def streamed(body: bytes, *, is_whole: bool = False) -> bytes:
    """An answer in one chunk, which ends there or is cut off."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n" % (len(body), body) + b"0\r\n\r\n" * is_whole
