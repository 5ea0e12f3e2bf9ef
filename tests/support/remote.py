"""Workers without a database: servers and workers as processes of a fleet, with a trap where the database would be."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Any

from aaiclick.orchestration.access.tokens import digest_of
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.access import tokens as store
from aaiclick.orchestration.store.access.tokens import Bounds
from aaiclick.orchestration.store.nodes.registration import ensure_node
from aaiclick.orchestration.store.session import Session
from tests.support.fleet import Fleet, Member, eventually

TRAP = "postgresql+asyncpg://nobody:nothing@127.0.0.1:1/none"
"""Whoever opens the database of the state fails."""

SECRET = "x" * 43


@dataclass
class Remote:
    """A fleet whose workers ask servers."""

    fleet: Fleet
    port: int
    token: str
    servers: list[Member] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def addresses(self) -> list[str]:
        """Of all servers."""
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    async def serve(self, port: int = 0, program: tuple[str, ...] = ()) -> Member:
        """Start a server, and wait until it listens."""
        server = await self._served(port or self.port, program)
        self.servers.append(server)
        self.ports.append(port or self.port)
        return server

    async def serve_again(self, number: int, program: tuple[str, ...] = ()) -> Member:
        """Start this server, which has ended, again where it was."""
        self.servers[number] = server = await self._served(self.ports[number], program)
        return server

    async def _served(self, port: int, program: tuple[str, ...]) -> Member:
        server = self.fleet.start("server", "start", "--port", str(port), program=program)
        await eventually(lambda: "serving" in server.said() or not server.alive, self.fleet.explain)
        assert server.alive, server.said()
        return server

    def start_worker(self, *options: str, url: str = "", **settings: Any) -> Member:
        """Start a worker that asks the server, at home in a directory of its own."""
        home = self.fleet.home / f"node-{len(self.fleet.members)}"
        env: dict[str, Any] = {
            "AAICLICK_SQL_URL": TRAP,
            "AAICLICK_LOCAL_ROOT": str(home),
            "AAICLICK_LOG_DIR": str(home / "logs"),
            "AAICLICK_API_TOKEN": self.token,
        }
        return self.fleet.start_worker("--coordinator", url or self.url, *options, **env | settings)

    async def workers(self, count: int, *options: str, **settings: Any) -> list[Member]:
        """So many workers that have their sessions."""
        found = [self.start_worker(*options, **settings) for _ in range(count)]
        for member in found:
            await self.fleet.session_of(member)
        return found


async def remote_fleet(fleet: Fleet, role: Role = Role.WORKER) -> Remote:
    """A server, and a token for workers."""
    remote = Remote(fleet, free_port(), await token_for(fleet, role))
    await remote.serve()
    return remote


async def token_for(fleet: Fleet, role: Role = Role.WORKER) -> str:
    """A token of a node, or one for joining."""

    async def work(session: Session) -> Token:
        bounds = Bounds(node_id=await ensure_node(session, "here", None) if role == Role.WORKER else None, uses_left=9)
        digest = digest_of(SECRET)
        return await store.add_token(session, name=role, role=role, digest=digest, lives_s=None, bounds=bounds)

    token = await fleet.database.transact(work)
    return f"aai_{token.id}_{SECRET}"


def free_port() -> int:
    """A port that is free now, and to which a server can come back."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
