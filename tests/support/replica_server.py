"""A replica in this process, on a real socket, beside the coordinator that it copies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from aaiclick.server.app import create_replica
from aaiclick.server.replicas.opening import Replicated, replicated_of
from aaiclick.server.replicas.progress import Progress
from aaiclick.server.transport.addresses import listen, url_of
from tests.support.node_server import NodeServer, started


@dataclass(frozen=True)
class ReplicaServer:
    """Where it is, and its application."""

    url: str
    app: Any
    tokens: Any

    @property
    def progress(self) -> Progress:
        found: Progress = self.app.state.replica
        return found

    async def ask(self, method: str, path: str, role: str = "viewer", **more: Any) -> httpx.Response:
        """Ask for something under /api/v1, or for another path that is given whole."""
        async with httpx.AsyncClient(base_url=self.url, timeout=60) as client:
            headers = {"Authorization": f"Bearer {self.tokens[role]}"} | more.pop("headers", {})
            return await client.request(method, path, headers=headers, **more)

    async def get(self, path: str, role: str = "viewer", **more: Any) -> httpx.Response:
        return await self.ask("GET", f"/api/v1{path}", role, **more)


def copied(server: NodeServer, file: Path) -> Replicated:
    """What a replica of this server copies."""
    return replicated_of(server.url, file, server.tokens["replica"])


@asynccontextmanager
async def replica_server(server: NodeServer, file: Path, *, wait: bool = True) -> AsyncIterator[ReplicaServer]:
    """Serve a replica of a server; with `wait`, its first copy is complete."""
    app, listening = create_replica(copied(server, file)), listen("127.0.0.1", 0)
    serving, ended = await started(app, listening)
    try:
        replica = ReplicaServer(url_of(listening), app, server.tokens)
        if wait:
            assert await replica.progress.reaches(0, 60)
        yield replica
    finally:
        serving.should_exit = True
        await ended
        listening.close()
