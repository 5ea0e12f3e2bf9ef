"""Connections of whoever has not said yet who they are: how much, and for how long, they may send before that."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_BYTES_MAX = 65_536
"""Bytes of a request up to the end of its headers; a piece that came with the last of them may go beyond."""

HEAD_S_MAX = 30.0
"""Seconds until it is there."""


class Bounded(asyncio.Protocol):
    """Closes a connection whose next request does not begin in time, or never ends to begin.

    Neither of uvicorn's protocols waits for an end, and the faster one keeps headers of any length.
    """

    cycle: Any
    """The request that was begun last: None until its headers are there."""
    transport: Any
    send_400_response: Any

    _head_bytes = 0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._head_bytes = 0
            self._wait_no_more()
        elif before is None or (before.response_complete and not before.more_body):
            self._head_bytes += len(data)
            self._wait()
            if self._head_bytes > HEAD_BYTES_MAX and not self.transport.is_closing():
                self.send_400_response("The headers are too large.")

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is None:
            self._late = asyncio.get_running_loop().call_later(HEAD_S_MAX, lambda: self.transport.close())

    def _wait_no_more(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def bounded(protocol: type[asyncio.Protocol] = AutoHTTPProtocol) -> type[asyncio.Protocol]:
    """One of uvicorn's protocols, within these bounds."""
    return type("BoundedProtocol", (Bounded, protocol), {})
