"""A fleet on hosts of its own: servers, workers and the database reach each other through a network that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import make_url

from tests.servers.hosts import ENTER, Host, Network, network
from tests.support.fleet import Fleet, Member, eventually
from tests.support.proxy import Proxy
from tests.support.remote import TRAP, token_for

PORT = 8765


@dataclass
class Apart:
    """Members of a fleet, each on a host of its own."""

    fleet: Fleet
    network: Network
    token: str
    database: Host
    database_port: int
    hosts: dict[int, Host] = field(default_factory=dict)
    """Where the members are, by their process ids."""

    async def serve(self) -> Member:
        """Start a server, and wait until it listens."""
        host = self.network.add()
        url = make_url(self.fleet.database.url).set(host=self.database.address, port=self.database_port)
        options = ("server", "start", "--host", host.address, "--port", str(PORT))
        server = self._start(host, *options, AAICLICK_SQL_URL=url.render_as_string(hide_password=False))
        await eventually(lambda: "serving" in server.said() or not server.alive, self.fleet.explain)
        assert server.alive, server.said()
        return server

    async def worker(self, *servers: Member, options: tuple[str, ...] = (), **settings: Any) -> Member:
        """Start a worker that asks these servers, and wait for its session."""
        host = self.network.add()
        home = self.fleet.home / f"node-{host.number}"
        env: dict[str, Any] = {
            **host.variables,
            "AAICLICK_COORDINATOR_URL": ",".join(self.url(server) for server in servers),
            "AAICLICK_SQL_URL": TRAP,
            "AAICLICK_LOCAL_ROOT": str(home),
            "AAICLICK_LOG_DIR": str(home / "logs"),
            "AAICLICK_API_TOKEN": self.token,
        }
        member = self.fleet.start_worker(*options, program=("-c", ENTER), **env | settings)
        self.hosts[member.pid] = host
        await self.fleet.session_of(member)
        return member

    def _start(self, host: Host, *options: str, **env: Any) -> Member:
        env |= host.variables
        member = self.fleet.start(*options, program=("-c", ENTER), **env)
        self.hosts[member.pid] = host
        return member

    def url(self, server: Member) -> str:
        return f"http://{self.hosts[server.pid].address}:{PORT}"

    def cut(self, member: Member) -> None:
        self.network.cut(self.hosts[member.pid])

    def mend(self, member: Member) -> None:
        self.network.mend(self.hosts[member.pid])

    def lose(self, sender: Member, receiver: Member) -> None:
        """Lose what one sends to the other."""
        self.network.lose(self.hosts[sender.pid], self.hosts[receiver.pid])


@asynccontextmanager
async def apart(fleet: Fleet) -> AsyncIterator[Apart]:
    """Hosts for this fleet; its database is on one of them, and it has a control loop that reaches it in any case."""
    to = make_url(fleet.database.url)
    assert to.host is not None
    assert to.port is not None
    with network() as made:
        database = made.add()
        relay = Proxy(to.host, to.port)
        port = await relay.open(database.listen())
        fleet.start("background", "start")
        try:
            yield Apart(fleet, made, await token_for(fleet), database, port)
        finally:
            fleet.end()
            await relay.close()
