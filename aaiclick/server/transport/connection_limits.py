"""Wraps uvicorn's HTTP protocol: limits in bytes and seconds before a request is authenticated, and orderly closing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from aaiclick.config import settings
from aaiclick.server.transport.connection_counts import KNOWN, Crowd
from aaiclick.server.transport.request_framing import wrong_in, wrong_so_far

HEAD_BYTES_MAX = 65_536
"""Bytes of a request's head: the request line and the headers."""

HEAD_S_MAX = 10.0
"""Seconds until the head is complete."""

STRANGER_IDLE_S, IDLE_S = 5.0, 60.0
"""Seconds until the head of the next request on a connection is complete: without a token, and with one that counts.
Workers ask every few seconds, and would have to connect each time."""

LINGER_S = 2.0
LINGER_BYTES_MAX = 2**20
"""How long, and how much, a client answered early may go on sending: after a reset it could not read the answer."""

PART_BYTES = 16_384
"""Bytes of a body that are parsed at a time."""

UNREAD_S_MAX = 60.0
"""Seconds that an answer waits for a client that does not read it."""

OVERHEAD = 8
"""Bytes on the wire for each byte of a body: in chunked encoding each chunk has its length before it."""


DATA = re.compile(rb"[A-Z]+ /api/v1/node/data[/? ]")
"""Requests whose bodies are passed on as they come, however long: they are kept nowhere."""


class Bounded(asyncio.Protocol):
    """Mix-in for one of uvicorn's protocols: passes on only complete request heads that are checked to be unambiguous.

    Pipelining is not supported: if a request arrives before the previous one is answered, the connection is closed.
    """

    crowd: Crowd
    refused: Callable[[int], None]
    """Called with the status of each answer that does not come from the application."""
    cycle: Any
    """Uvicorn's object of the latest request; None until the first head is parsed."""
    transport: Any
    app: Any

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._passes, self.app = self.app, self._answer
        self._socket: Any = None
        self._head = bytearray()
        self._in_head, self._looked_at, self._asked_for = True, False, False
        self._held = bytearray()
        self._body_bytes = self._late_bytes = 0
        self._is_stream = False
        self._closing = self._lingers = False
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    # ---------------------------------------------------------------- receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = transport
        super().connection_made(_Shared(transport, self))  # type: ignore[arg-type]
        self._wait(HEAD_S_MAX, self.hang_up)
        self.crowd.enter(self)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            self._late_bytes += len(data)
            if self._late_bytes > LINGER_BYTES_MAX:
                self.hang_up()
        elif self._in_head:
            self._head_received(data)
        else:
            self._body_received(data)

    def _head_received(self, data: bytes) -> None:
        begin = max(0, len(self._head) - 3)
        self._head += data
        end = self._head.find(b"\r\n\r\n", begin)
        if end > HEAD_BYTES_MAX or (end < 0 and len(self._head) > HEAD_BYTES_MAX):
            self._refuse(431, f"The headers have more than {HEAD_BYTES_MAX} bytes.")
        elif wrong := wrong_in(bytes(self._head[:end])) if end >= 0 else wrong_so_far(self._head, begin):
            self._refuse(400, wrong)
        elif end >= 0:
            head, rest = bytes(self._head[: end + 4]), bytes(self._head[end + 4 :])
            self._head.clear()
            self._in_head, self._looked_at, self._body_bytes = False, True, 0
            self._is_stream = DATA.match(head) is not None
            self._wait_no_more()
            self.crowd.work(self)
            super().data_received(head)
            if rest and not self._closing:
                self._body_received(rest)

    def _body_received(self, data: bytes) -> None:
        """Hold the body unparsed until the application asks for it: that of a refused request is never parsed."""
        if not self.cycle.more_body:
            self.cycle.keep_alive = False  # a pipelined request: close after the answer to the first one
            return
        self._body_bytes += len(data)
        self._held += data
        if self._body_bytes > OVERHEAD * settings().value_bytes_max + LINGER_BYTES_MAX and not self._is_stream:
            self.hang_up()
        elif self._asked_for:
            self._pass_on()
        elif len(self._held) > HEAD_BYTES_MAX:
            self._socket.pause_reading()

    def _pass_on(self) -> None:
        """Parse the next part of the body: so small that even chunks of one byte take little time."""
        part = bytes(self._held[:PART_BYTES])
        del self._held[:PART_BYTES]
        super().data_received(part)
        if not self._held and not self._closing:
            self._socket.resume_reading()

    # ---------------------------------------------------------------- answering

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; add «connection: close» to an answer that begins before the whole body was parsed."""
        cycle, looked_at, self._looked_at = self.cycle, self._looked_at, False
        self.crowd.know(self, False)
        scope["state"][KNOWN] = lambda: self.crowd.know(self, True)

        async def ask() -> Message:
            if self._held and cycle.more_body and not cycle.body:
                await asyncio.sleep(0)  # let other tasks run between two parts
                self._pass_on()
            self._asked_for = True
            try:
                return await receive()
            finally:
                self._asked_for = False

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and (cycle.more_body or not looked_at):
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        if looked_at:
            await self._passes(scope, ask, tell)
        else:  # its head arrived with the end of the previous body and was not checked
            body = _problem(400, "A request came before the answer to the one before it.")
            headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"%d" % len(body))]
            self.refused(400)
            await tell({"type": "http.response.start", "status": 400, "headers": headers})
            await tell({"type": "http.response.body", "body": body})

    def on_response_complete(self) -> None:
        """Expect the next head, if the connection stays open."""
        answered = self.cycle
        super().on_response_complete()  # type: ignore[misc]
        if self.cycle is answered and not self._closing:
            self._in_head = True
            self._held.clear()
            self._wait(STRANGER_IDLE_S if self in self.crowd.strangers else IDLE_S, self.hang_up)
            self.crowd.wait(self)

    def send_400_response(self, msg: str) -> None:
        """Refuse a head or body that uvicorn cannot parse; uvicorn calls this."""
        if self.cycle is not None and self.cycle.response_started:
            self.hang_up()  # an answer has begun, so no other can be sent
        else:
            self._refuse(400, msg)

    def _refuse(self, status: int, detail: str) -> None:
        body = _problem(status, detail)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self._socket.write(head.encode() + body)
        self.refused(status)
        self._close(linger=True)

    # ---------------------------------------------------------------- closing

    def _close(self, *, linger: bool = False) -> None:
        """Close when all is sent. If the client may still be sending, discard that for LINGER_S, then hang up."""
        if self._closing:
            return
        self._closing = True
        self.crowd.wait(self)
        self._lingers = linger or (self.cycle is not None and self.cycle.more_body)
        if self._lingers:
            if self._socket.can_write_eof():  # TLS cannot
                self._socket.write_eof()
            self._socket.resume_reading()
        else:
            self._socket.close()
        self._wait(LINGER_S if self._lingers else UNREAD_S_MAX, self.hang_up)

    def hang_up(self) -> None:
        """Close at once, whatever is under way."""
        self._closing = True
        self._socket.abort()

    def shutdown(self) -> None:
        """End the connection because the server stops; uvicorn calls this."""
        if self._lingers:
            self.hang_up()
        elif not self._closing:
            super().shutdown()  # type: ignore[misc]

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = asyncio.get_running_loop().call_later(UNREAD_S_MAX, self.hang_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._read()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._wait_no_more()
        self._read()
        self.crowd.leave(self)
        super().connection_lost(exc)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._wait_no_more()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


class _Shared:
    """The transport given to uvicorn: its `close` lingers, as an immediate one could lose answers."""

    def __init__(self, transport: Any, ours: Bounded) -> None:
        self._transport, self._ours = transport, ours

    def close(self) -> None:
        """Close when all is sent."""
        self._ours._close()

    def is_closing(self) -> bool:
        """Return whether nothing more will be sent."""
        return self._ours._closing

    def write(self, data: bytes) -> None:
        """Send the data, unless the connection is closing."""
        if not self._ours._closing:
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def _problem(status: int, detail: str) -> bytes:
    phrase = HTTPStatus(status).phrase
    kind = f"urn:aaiclick:problem:{phrase.replace(' ', '')}"
    return json.dumps({"type": kind, "title": phrase, "status": status, "detail": detail}).encode()


def bounded(
    protocol: type[asyncio.Protocol] = AutoHTTPProtocol,
    *,
    connections_max: int | None = None,
    refused: Callable[[int], None] = lambda _: None,
) -> type[asyncio.Protocol]:
    """Return a subclass of uvicorn's protocol with these limits; its connections share one `Crowd`."""
    facts = {"crowd": Crowd(connections_max), "refused": staticmethod(refused)}
    return type("BoundedProtocol", (Bounded, protocol), facts)
