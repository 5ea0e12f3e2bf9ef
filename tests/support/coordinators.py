"""Whoever coordinates, by the name of the implementation, and what the tests of all of them share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from aaiclick.ids import new_ids
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.bus.local import LocalBus
from aaiclick.orchestration.coordinator.contract import JobCoordinator as Coordinator
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.protocol import JSON, MSGPACK
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import (
    Claim,
    Job,
    Receipt,
    Report,
    Worker,
)
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.store.database import Database
from tests.support.carried import CarriedCoordinator
from tests.support.node_server import NodeServer, any_run_may, node_server


@asynccontextmanager
async def direct(url: str) -> AsyncIterator[Coordinator]:
    database = await Database.open(url)
    bus = LocalBus(url)
    try:
        yield DirectCoordinator(database, draw=lambda: 1.0, bus=bus)
    finally:
        await bus.close()
        await database.close()


@asynccontextmanager
async def carried(url: str) -> AsyncIterator[Coordinator]:
    """Nothing goes to it, or comes from it, that could not travel between processes."""
    async with direct(url) as there:
        yield CarriedCoordinator(there)


class OverHttp(HttpCoordinator):
    """A worker's coordinator over HTTP. Jobs as a whole are looked at directly."""

    def __init__(self, server: NodeServer, there: Coordinator, media: str) -> None:
        super().__init__(server.coordinator(media=media).calls)
        any_run_may(server)
        door = server.front_door(media=media)
        self.submit, self.tables_of_others = door.submit, door.tables_of_others
        self.register_tables, self.leave_tables = door.register_tables, door.leave_tables
        self.job, self.result_of = door.job, door.result_of
        self.cancel, self.reserve = there.cancel, there.reserve
        self._there, self._server = there, server
        self._others: dict[int, HttpCoordinator] = {}
        """By worker: the coordinator with the token of its node."""

    async def register(self, *, node: NodeDescription | None = None, **facts: Any) -> Worker:
        """A worker is of the node that its token is bound to, and none is of no node."""
        if node is None:
            return await super().register(**facts)
        made = await create_token(f"{node.name} {new_ids(1)[0]}", "worker", node=node.name)
        other = self._server.coordinator(token=made.text)
        worker = await other.register(node=node, **facts)
        self._others[worker.id] = other
        return worker

    async def report(self, worker_id: int, reports: Sequence[Report]) -> Receipt:
        other = self._others.get(worker_id)
        return await (super().report if other is None else other.report)(worker_id, reports)

    async def claim(self, worker_id: int, *, reserved_for: int = 0, **options: Any) -> list[Claim]:
        """What is reserved is claimed by its owner, who has the database: no server gives it to a node."""
        other = self._others.get(worker_id)
        asked = self._there.claim if reserved_for else super().claim if other is None else other.claim
        return await asked(worker_id, reserved_for=reserved_for, **options)


@asynccontextmanager
async def http(url: str) -> AsyncIterator[Coordinator]:
    """Over a real socket to a real server: in JSON on SQLite, in msgpack on the others."""
    async with node_server(url) as server, direct(url) as there:
        coordinator = OverHttp(server, there, JSON if url.startswith("sqlite") else MSGPACK)
        await coordinator.grant_ids()
        yield coordinator
        for each in (coordinator, *coordinator._others.values()):
            each.close()


IMPLEMENTATIONS: dict[str, Callable[[str], AbstractAsyncContextManager[Coordinator]]] = {
    "carried": carried,
    "direct": direct,
    "http": http,
}


def submission(*nodes: Node, **options: object) -> Submission:
    job = new_job("job", **options)  # type: ignore[arg-type]
    graph = gather(job.id, nodes)
    graph.new_job = job
    return graph


async def look(coordinator: Coordinator, job: Job) -> Job:
    found = await coordinator.job(job.id)
    assert found is not None
    return found


async def claim_one(coordinator: Coordinator, worker: int) -> Claim:
    (claim,) = await coordinator.claim(worker, limit=1)
    return claim
