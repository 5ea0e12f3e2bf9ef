"""A server in this process, on a real socket, that workers ask over HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import uvicorn

from aaiclick.config import reset_settings
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.coordinator.http.calls import Calls
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.front_door import HttpFrontDoor
from aaiclick.orchestration.coordinator.http.protocol import MSGPACK, ForRun
from aaiclick.orchestration.models.token import Token
from aaiclick.server.app import create_app
from aaiclick.server.auth.refusals import Refusals
from aaiclick.server.node.rights import Rights
from aaiclick.server.serving import Server
from aaiclick.server.transport.addresses import listen, url_of
from aaiclick.server.transport.connection_limits import bounded
from aaiclick.server_address import Address


@dataclass(frozen=True)
class NodeServer:
    """Where it is, the tokens of its roles, and its application."""

    url: str
    tokens: Mapping[str, str]
    app: Any

    def coordinator(self, role: str = "worker", *, media: str = MSGPACK, token: str = "") -> HttpCoordinator:
        """A coordinator of this server, with a token of this role."""
        return HttpCoordinator(Calls([Address.of(self.url)], lambda: token or self.tokens[role], media=media))

    def front_door(self, role: str = "worker", *, media: str = MSGPACK, token: str = "") -> HttpFrontDoor:
        """The front door of this server, with a token of this role; see `any_run_may`."""
        return HttpFrontDoor(self.coordinator(role, media=media, token=token).calls)


def any_run_may(server: NodeServer) -> None:
    """Let bodies of all runs call the front door, and without a run: for tests of what is behind it."""
    check = Rights._check_run

    async def let(self: Rights, token: Token, asked: ForRun) -> None:
        if asked.run is not None:
            await check(self, token, asked)

    rights = server.app.state.node.desk.rights
    rights._check_run = let.__get__(rights)


@cache
def built() -> Any:
    """The application is built once: each server opens it anew."""
    return create_app()


@asynccontextmanager
async def node_server(sql_url: str, *roles: str) -> AsyncIterator[NodeServer]:
    """Serve a database; with tokens of these roles, a worker's unless told otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AAICLICK_SQL_URL", sql_url)
        reset_settings()
        app, listening = built(), listen("127.0.0.1", 0)
        app.state.refusals = Refusals()
        server, serving = await started(app, listening)
        try:
            tokens = {role: (await create_token(str(role), role)).text for role in roles or ("worker",)}
            yield NodeServer(url_of(listening), tokens, app)
        finally:
            server.should_exit = True
            await serving
            listening.close()
    reset_settings()


async def started(app: Any, listening: socket.socket) -> tuple[Server, asyncio.Task[None]]:
    up = asyncio.Event()
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", ws="none", http=bounded())
    server = Server(config, up.set)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    waiting = asyncio.create_task(up.wait())
    await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
    assert up.is_set(), "the server did not start"
    return server, serving
