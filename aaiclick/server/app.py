"""The application: its rooms, its door, and the one connection to the state that all requests share."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from aaiclick.config import settings
from aaiclick.data.clients.opening import kept_open
from aaiclick.errors import AaiclickError
from aaiclick.orchestration.connections import coordinated
from aaiclick.orchestration.execution.id_supply import keep_ids
from aaiclick.server.auth.actors import Viewer
from aaiclick.server.auth.callers import KnownCallers
from aaiclick.server.auth.middleware import AuthMiddleware
from aaiclick.server.auth.refusals import Refusals
from aaiclick.server.event_positions import CoordinatorDoor
from aaiclick.server.mcp import agents
from aaiclick.server.node.road import NodeRoad
from aaiclick.server.openapi import UNCHANGED, document, told
from aaiclick.server.problems import on_error, on_http_error, on_validation_error
from aaiclick.server.responses import answer
from aaiclick.server.routes import (
    audit,
    backfills,
    cache,
    callbacks,
    dead_letters,
    events,
    health,
    ids,
    jobs,
    metrics,
    nodes,
    objects,
    registered_jobs,
    resources,
    tasks,
    workers,
)
from aaiclick.server.streaming.event_reader import EventReader
from aaiclick.server.streaming.streams import Streams

if TYPE_CHECKING:
    from aaiclick.server.replicas.opening import Replicated

PREFIX = "/api/v1"
ROOMS = (
    *(jobs, tasks, workers, nodes, registered_jobs, backfills, cache, objects, dead_letters),
    *(resources, events, audit, callbacks, ids, health),
)


def create_app(*, hosts: Collection[str] = (), mcp_write: bool | None = None) -> FastAPI:
    """The whole application. `hosts`: names by which it may be asked, beside the loopback's and the settings'.

    With `mcp_write` agents get tools that change something; without a word, as the settings say.
    """
    app = _assembled(lifespan, CoordinatorDoor, hosts)
    app.state.mcp_write = settings().mcp_write if mcp_write is None else mcp_write
    return app


def create_replica(replicated: Replicated, *, hosts: Collection[str] = ()) -> FastAPI:
    """The application of a replica: the same routes on a copy of its coordinator's state, which it only reads."""
    from aaiclick.server.replicas.doors import ReplicaDoor  # here, as few servers are replicas

    return _assembled(partial(replica_lifespan, replicated), ReplicaDoor, hosts)


def _assembled(opened: Callable[[FastAPI], Any], door: Callable[..., ASGIApp], hosts: Collection[str]) -> FastAPI:
    app = FastAPI(
        title="aaiclick",
        lifespan=opened,
        openapi_url=None,  # the document needs a token, as everything does
        docs_url=None,  # its page would load code of others
        redoc_url=None,
        redirect_slashes=False,
    )
    app.include_router(health.probes)
    app.include_router(metrics.router)
    for room in ROOMS:
        app.include_router(room.router, prefix=PREFIX)
    app.include_router(_document(), prefix=PREFIX)
    app.state.refusals = Refusals()
    app.router.routes.append(agents.route())
    named = urlsplit(settings().server_url).netloc.lower()
    app.add_middleware(door)
    app.add_middleware(AuthMiddleware, hosts=(*hosts, *settings().server_hosts, *([named] if named else ())))
    app.add_exception_handler(AaiclickError, on_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    return app


@asynccontextmanager
async def replica_lifespan(replicated: Replicated, app: FastAPI) -> AsyncIterator[None]:
    """Keep the replica's file open for all requests, and fed."""
    from aaiclick.server.replicas.doors import NoNodes  # here, as few servers are replicas
    from aaiclick.server.replicas.opening import replica_opened  # as above

    async with replica_opened(replicated) as replica:
        app.state.replica, app.state.passing, app.state.callers = replica.progress, replica.passing, replica.callers
        app.state.streams, app.state.reader = Streams(replica.callers.still_counts), EventReader()
        app.state.node = NoNodes(replica.progress)
        app.state.surroundings = contextvars.copy_context()
        async with run_beside(replica.feeder.run(), app.state.reader.run()):
            yield


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep the state's connection, and the data's once it was used, open for all requests."""
    app.state.streams, app.state.reader, app.state.callers = Streams(), EventReader(), KnownCallers()
    async with AsyncExitStack() as stack:
        coordinator = await stack.enter_async_context(coordinated())
        await stack.enter_async_context(kept_open())
        await stack.enter_async_context(agents.opened(app))
        app.state.node = await stack.enter_async_context(NodeRoad(coordinator, app.state.streams.ending))
        app.state.surroundings = contextvars.copy_context()
        refusals: Refusals = app.state.refusals
        try:
            async with run_beside(keep_ids(coordinator), app.state.reader.run(), refusals.run()):
                yield
        finally:
            await refusals.end()


@asynccontextmanager
async def run_beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run this beside the block, and cancel it at the end, before any connection is closed."""
    beside = asyncio.gather(*work)
    try:
        yield
    finally:
        beside.cancel()
        with suppress(asyncio.CancelledError):
            await beside


def _document() -> APIRouter:
    router = APIRouter(tags=["document"])

    @router.get("/openapi.json", response_model=dict[str, object], responses=told() | UNCHANGED)
    async def openapi(request: Request, _: Viewer) -> Response:
        """This document."""
        return answer(request, document(request.app))

    return router
