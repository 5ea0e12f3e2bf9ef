"""Whether the server lives, whether it can work, and how everything is."""

from __future__ import annotations

import asyncio
from typing import Protocol

from fastapi import APIRouter, Request, Response
from starlette.applications import Starlette

from aaiclick.orchestration.queries.health import Health, health_check
from aaiclick.representations.health import Alive, HealthAnswer, ReplicaAnswer, health_answer
from aaiclick.server.auth.actors import Viewer
from aaiclick.server.openapi import problem_response, told
from aaiclick.server.problems import problem
from aaiclick.server.responses import answer

NEEDED = ("database", "schema")

probes = APIRouter(tags=["health"])
router = APIRouter(prefix="/health", tags=["health"])


@probes.get("/healthz", response_model=Alive, responses={500: problem_response(500)})
async def healthz(request: Request) -> Response:
    """Tell whether the process answers."""
    return answer(request, Alive(status="alive"))


@probes.get("/readyz", response_model=Alive, responses={500: problem_response(500), 503: problem_response(503)})
async def readyz(request: Request) -> Response:
    """Tell whether the server can work: the database answers and has the needed schema."""
    replica = replica_of(request.app)
    if replica is not None:
        if not replica.is_whole:
            return problem(503, "NotReady", "The first copy of the coordinator is not complete.")
        return answer(request, Alive(status="ready"))
    health = await _looked(request.app)
    missing = [name for name in NEEDED if not health[name].ok]
    if missing:  # nobody is asked who they are here: no details
        return problem(503, "NotReady", f"Not usable now: {', '.join(missing)}.")
    return answer(request, Alive(status="ready"))


class Replica(Protocol):
    """What is asked of a replica."""

    @property
    def is_whole(self) -> bool:
        """Whether its first copy is complete."""

    def health(self) -> Health:
        """Return how it is."""

    def told(self) -> ReplicaAnswer:
        """Return how far it is."""

    def metrics(self) -> str:
        """Return its numbers in the text format of Prometheus."""


def replica_of(app: Starlette) -> Replica | None:
    """Return the replica that an application serves; None if it is a coordinator."""
    found: Replica | None = getattr(app.state, "replica", None)
    return found


async def _looked(app: Starlette) -> Health:
    """One look at a time for all who ask meanwhile: anybody may ask, as often as they like."""
    looking: asyncio.Task[Health] | None = getattr(app.state, "looking", None)
    if looking is None or looking.done():
        looking = app.state.looking = asyncio.create_task(health_check())
    return await asyncio.shield(looking)


@router.get("", response_model=HealthAnswer, responses=told())
async def health(request: Request, _: Viewer) -> Response:
    """Check everything: the database, its schema, workers, the leader, the disk; of a replica, how far it is."""
    replica = replica_of(request.app)
    if replica is not None:
        return answer(request, health_answer(replica.health(), replica.told()))
    return answer(request, health_answer(await health_check()))
