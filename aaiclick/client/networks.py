"""Connections, as seen by the one implementation of the client: by blocking sockets, or on an event loop.

The methods of both are coroutines. Those of blocking sockets never suspend, so that `finished` can run whatever is
built on them without an event loop.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, Protocol, TypeVar

from aaiclick.server_address import Address

T = TypeVar("T")

CONNECT_S_MAX = 10.0
LINE_BYTES_MAX = 16 * 2**20


class NoConnection(ConnectionError):
    """There is no connection: nothing was sent."""


class Cut(ConnectionError):
    """The connection ended, or what arrived is no answer: whether the request was carried out is not known."""


class Wire(Protocol):
    """An open connection. Its methods raise OSError, also if nothing arrives for `timeout_s`."""

    timeout_s: float

    async def readline(self) -> bytes:
        """Return the next line with its end; what there is at the end of the connection."""

    async def read(self, most: int) -> bytes:
        """Return some bytes; none at the end of the connection."""

    async def write(self, data: bytes) -> None:
        """Send all of it."""

    def is_stale(self) -> bool:
        """Return whether it cannot be used again: it has ended, or belongs to another event loop."""

    def close(self) -> None:
        """Close it at once."""


class Network(Protocol):
    """Makes connections, and waits."""

    async def connect(self, address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> Wire:
        """Connect; raise NoConnection."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


# ---------------------------------------------------------------- blocking


class BlockingWire:
    """A socket whose calls block."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._file = connected, connected.makefile("rb")
        self.timeout_s = CONNECT_S_MAX

    async def readline(self) -> bytes:
        self._socket.settimeout(self.timeout_s)
        return self._file.readline(LINE_BYTES_MAX)

    async def read(self, most: int) -> bytes:
        self._socket.settimeout(self.timeout_s)
        return self._file.read1(most)

    async def write(self, data: bytes) -> None:
        self._socket.settimeout(self.timeout_s)
        self._socket.sendall(data)

    def is_stale(self) -> bool:
        looking = select.poll()  # not select(), which knows no descriptor above 1023
        looking.register(self._socket, select.POLLIN)
        return bool(looking.poll(0))  # nothing was asked for: what there is to read is its end

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class BlockingNetwork:
    """Blocks the calling thread."""

    async def connect(self, address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> Wire:
        try:
            found = socket.create_connection((address.host, address.port), min(timeout_s, CONNECT_S_MAX))
        except OSError as error:
            raise NoConnection(said(error)) from error
        try:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return BlockingWire(tls.wrap_socket(found, server_hostname=address.host) if tls else found)
        except OSError as error:
            found.close()
            raise NoConnection(said(error)) from error

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 (it is to block)


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, as those on a `BlockingNetwork` do, and return what it returns."""
    try:
        work.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    work.close()
    raise AssertionError("a coroutine on blocking sockets has waited for an event loop")


def iterated(parts: AsyncGenerator[T, None]) -> Iterator[T]:
    """Yield what an asynchronous generator on a `BlockingNetwork` yields."""
    try:
        while True:
            try:
                part = finished(parts.__anext__())
            except StopAsyncIteration:
                return
            yield part
    finally:
        finished(parts.aclose())


# ---------------------------------------------------------------- on an event loop


class LoopWire:
    """Streams of asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self.timeout_s = CONNECT_S_MAX

    async def readline(self) -> bytes:
        async with asyncio.timeout(self.timeout_s):
            try:
                return await self._reader.readline()
            except ValueError as error:
                raise Cut("a line is too long") from error

    async def read(self, most: int) -> bytes:
        async with asyncio.timeout(self.timeout_s):
            return await self._reader.read(most)

    async def write(self, data: bytes) -> None:
        async with asyncio.timeout(self.timeout_s):
            self._writer.write(data)
            await self._writer.drain()

    def is_stale(self) -> bool:
        if self._loop is not asyncio.get_running_loop():
            return True
        return self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        if not self._loop.is_closed():
            self._writer.transport.abort()


class LoopNetwork:
    """Works on the running event loop."""

    async def connect(self, address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> Wire:
        try:
            async with asyncio.timeout(min(timeout_s, CONNECT_S_MAX)):
                streams = await asyncio.open_connection(address.host, address.port, ssl=tls, limit=LINE_BYTES_MAX)
        except OSError as error:
            raise NoConnection(said(error)) from error
        return LoopWire(*streams)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def said(error: OSError) -> str:
    """Return what went wrong with a connection, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if (error.errno or 0) > 0:
        return os.strerror(error.errno or 0)  # asyncio writes the address instead
    return error.strerror or str(error) or type(error).__name__
