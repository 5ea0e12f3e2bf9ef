"""A way to a server that can be cut, made slow, or lose what goes in one direction: at a chosen message, or at once."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sqlalchemy.engine import make_url

CHUNK_BYTES = 1 << 20
TRICKLE_S = 0.05


@dataclass(eq=False)
class Call:
    """One connection through the proxy."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    sent: list[bytes] = field(default_factory=list)
    """What the client sent, message by message."""
    silent: bool = False
    """Nothing comes through any more, and nobody is told."""
    doomed: bool = False
    """The next answer of the server is lost, and the connection with it."""

    def reset(self) -> None:
        """End it as a firewall does that has forgotten it."""
        for end in (self.client, self.server):
            if not end.is_closing():
                _forget(end.get_extra_info("socket"))
                end.transport.abort()


Judge = Callable[[Call, bytes], Awaitable[None] | None]
"""Sees each message of a client before it is passed on."""


def pass_on(call: Call, data: bytes) -> None:
    """Let it go through."""


class Proxy:
    """Passes on what is sent, until a test says otherwise."""

    def __init__(self, host: str, port: int) -> None:
        self.calls: list[Call] = []
        self.messages = 0
        """How many came from clients."""
        self.judge: Judge = pass_on
        self.lost: frozenset[str] = frozenset()
        """Directions in which all is lost, and nobody is told: "up" to the server, "down" from it."""
        self.delay_s = 0.0
        """Seconds that each message takes, in each direction."""
        self.bytes_per_s: int | None = None
        """How much comes through each connection, in each direction."""
        self._to = (host, port)
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, listening: socket.socket | None = None) -> int:
        """Listen, on this socket if there is one; gives the port."""
        listening = listening or socket.create_server(("127.0.0.1", 0))
        self._listener = await asyncio.start_server(self._accept, sock=listening)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        self._listener.close()
        for call in self.calls:
            call.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def reset_at(self, number: int, *, answered: bool) -> None:
        """Reset whoever sends the message of that number: instead of passing it on, or instead of its answer."""

        def judge(call: Call, _: bytes) -> None:
            if self.messages != number:
                return
            if answered:
                call.doomed = True
            else:
                call.reset()

        self.messages, self.judge = 0, judge

    def reset_all(self) -> None:
        for call in self.calls:
            call.reset()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, server = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        call = Call(writer, server)
        self.calls.append(call)
        for carrying in (self._carry_up(call, reader), self._carry_down(call, answers)):
            task = asyncio.create_task(carrying)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry_up(self, call: Call, reader: asyncio.StreamReader) -> None:
        while data := await _read(reader):
            self.messages += 1
            call.sent.append(data)
            waiting = self.judge(call, data)
            if waiting is not None:
                await waiting
            if not call.silent and "up" not in self.lost:
                await self._pass_on(call.server, data)
        call.server.close()

    async def _carry_down(self, call: Call, answers: asyncio.StreamReader) -> None:
        while data := await _read(answers):
            if call.doomed:
                call.reset()
            if not call.silent and "down" not in self.lost:
                await self._pass_on(call.client, data)
        call.client.close()

    async def _pass_on(self, end: asyncio.StreamWriter, data: bytes) -> None:
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        at_once = len(data) if self.bytes_per_s is None else max(1, int(self.bytes_per_s * TRICKLE_S))
        for start in range(0, len(data), at_once):
            if start:
                await asyncio.sleep(TRICKLE_S)
            end.write(data[start : start + at_once])


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK_BYTES)
    except OSError:
        return b""


def _forget(ours: socket.socket) -> None:
    """Closing it resets the connection, rather than ending it in order."""
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before this database, and the address of the database by way of it."""
    parts = make_url(url)
    assert parts.host is not None
    assert parts.port is not None
    proxy = Proxy(parts.host, parts.port)
    port = await proxy.open()
    try:
        yield proxy, parts.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    finally:
        await proxy.close()
