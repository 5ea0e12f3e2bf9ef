"""Where the application answers agents. The protocol is loaded and opened when the first of them asks.

Its SDK is a third of what the server would load before it listens, and most servers are never asked.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import copy_context
from importlib.util import find_spec
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
PROTOCOL = "aaiclick.server.mcp.endpoint"

for package in ("mcp", "mcp_types"):
    if find_spec(package) is None:  # said at the start, not to the first agent
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def route() -> Route:
    """Where the application answers agents: by POST alone, as nothing is told unasked."""
    return Route(PATH, endpoint=_Endpoint(), methods=["POST"], include_in_schema=False)


class _Endpoint:
    """Passes a request on to the protocol."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        agents: Agents = scope["app"].state.mcp
        await (await agents.manager()).handle_request(scope, receive, send)


@asynccontextmanager
async def opened(app: FastAPI) -> AsyncIterator[None]:
    """Answer agents inside this block."""
    app.state.mcp = agents = Agents(write=app.state.mcp_write)
    try:
        yield
    finally:
        await agents.close()


class Agents:
    """The protocol of one application, with the tools that agents get there."""

    def __init__(self, *, write: bool) -> None:
        self._write = write
        self._surroundings = copy_context()
        self._opening = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._ready, self._ending = asyncio.Event(), asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def manager(self) -> StreamableHTTPSessionManager:
        """What answers requests."""
        async with self._opening:
            if self._manager is None:
                self._manager = await self._open()
            return self._manager

    async def _open(self) -> StreamableHTTPSessionManager:
        if self._ending.is_set():
            raise RuntimeError("the application has ended")
        protocol = await asyncio.to_thread(importlib.import_module, PROTOCOL)  # others are answered meanwhile
        gc.freeze()  # it stays: as `serving` does with all that is loaded at the start
        manager: StreamableHTTPSessionManager = protocol.session_manager(write=self._write)
        # a task of its own, as its scope must be left where it was entered
        self._keeping = asyncio.create_task(self._keep(manager), context=self._surroundings)
        self._keeping.add_done_callback(lambda _: self._ready.set())
        await self._ready.wait()
        if self._keeping.done():
            await self._keeping  # it failed: so does the request
        return manager

    async def _keep(self, manager: StreamableHTTPSessionManager) -> None:
        async with manager.run():
            self._ready.set()
            await self._ending.wait()

    async def close(self) -> None:
        """Answer no more."""
        self._ending.set()
        if self._keeping is not None:
            await self._keeping
