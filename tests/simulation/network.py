"""The network between hosts without a database and servers: it loses, delays, repeats and reorders requests.

It stands where `Calls` opens a connection. All that is above it, on both sides, is the real code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from aaiclick.orchestration.access.tokens import digest_of, text_of
from aaiclick.orchestration.coordinator.http.calls import Calls
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.connection import Answer, Lost, NoConnection
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.access import tokens
from aaiclick.orchestration.store.access.tokens import Bounds
from aaiclick.orchestration.store.nodes.registration import ensure_node
from aaiclick.orchestration.store.session import Session
from aaiclick.server_address import Address
from tests.simulation.door import Door
from tests.simulation.servers import Exchange, Server
from tests.simulation.state import SimulatedDatabase
from tests.simulation.world import Party, World

if TYPE_CHECKING:
    from aaiclick.clock import Clock

KEPT = 120
"""Requests that were sent lately, which the network may bring again."""

REPEATED = 0.03
"""How often it brings a request twice by itself."""

NO_ANSWER_S = 5.0
"""After so long a host that is cut off gives up connecting."""

BACK_S = (1.0, 20.0)
"""How long a server that has crashed is missed."""


class Wire:
    """A connection of one party to one server, one call at a time."""

    def __init__(self, network: Network, party: Party, server: Server) -> None:
        self.network, self.party, self.server = network, party, server
        self.reusable = True

    def is_open(self) -> bool:
        return self.reusable and self.server.is_up

    async def send(self, method: str, target: str, headers: bytes, body: bytes) -> Answer:
        self.reusable = False
        lines = (line.split(": ", 1) for line in headers.decode().split("\r\n") if line)
        exchange = Exchange(method, target, {name.lower(): value for name, value in lines}, body)
        self.network.under_way[exchange] = self.party
        try:
            await self.network.carry(self.party, self.server, exchange)
            answer = await exchange.answer
            if answer is None:
                raise Lost("the server has gone")
            await self.network.bring_back(self.party, exchange)
            self.reusable = True
            return answer
        finally:
            del self.network.under_way[exchange]
            if not self.reusable:
                self.network.hang_up(exchange)

    def close(self) -> None:
        self.reusable = False


class Operator:
    """Someone who makes tokens for nodes."""

    name = "operator"
    can_die = False
    distance = 0.0
    worker_id = None

    def die(self) -> None:
        """Never."""


class Faultless(SimulatedDatabase):
    """On which nothing is lost."""

    async def _travel(self, when: str, what: str) -> None:
        """It takes no time."""


class Network:
    """All servers, and the ways to them."""

    def __init__(self, world: World) -> None:
        self.world, self.dice = world, world.dice
        count = self.dice.choice([1, 2, 3])
        self.addresses = [Address.of(f"http://server-{number}:8765") for number in range(1, count + 1)]
        self.servers: dict[Address, Server] = {}
        self.all_servers: list[Server] = []
        self.under_way: dict[Exchange, Party] = {}
        self.sent: list[Exchange] = []
        self.cut_until: dict[tuple[str, Address], float] = {}
        """Which hosts cannot reach which servers, and until when."""
        self.door = Door(world)
        self._operators = Faultless(world, Operator())
        for address in self.addresses:
            self.revive(address)

    # ------------------------------------------------------------ servers

    def revive(self, address: Address) -> None:
        known = self.servers.get(address)
        if self.world.is_over or (known is not None and not known.is_dead):
            return
        server = self.servers[address] = Server(self.world, address, address.host)
        self.all_servers.append(server)
        server.start()

    def miss(self, server: Server) -> None:
        """One has died: it comes back with nothing that it knew."""
        after_s = 1.0 if self.world.is_calm else self.dice.uniform(*BACK_S)
        self.world.loop.call_later(after_s, self.revive, server.address)

    def live(self) -> list[Server]:
        return [server for server in self.servers.values() if server.is_up]

    def spread(self, hints: Sequence[str]) -> None:
        for server in self.live():
            for hint in hints:
                for _ in range(self.dice.choice([0, 1, 1, 1, 2])):
                    self.world.loop.call_later(self.dice.uniform(0, 0.3), server.hints.hear, hint)

    def heal(self) -> None:
        """All is well from now on: whatever hangs ends."""
        self.cut_until.clear()
        for address in self.addresses:
            self.revive(address)
        for server in self.servers.values():
            server.gate.open()
        for exchange in self.under_way:
            exchange.end(None)

    # ------------------------------------------------------------ calls

    def coordinator(self, party: Party, token: Callable[[], str], clock: Clock) -> HttpCoordinator:
        return HttpCoordinator(Calls(self.addresses, token, clock=clock, connect=partial(self._connect, party)))

    def is_cut(self, party: Party, address: Address) -> bool:
        return self.cut_until.get((party.name, address), 0.0) > self.world.loop.time()

    async def _connect(self, party: Party, address: Address, secured: object) -> Wire:
        await self._travel(party)
        if self.is_cut(party, address):
            await asyncio.sleep(NO_ANSWER_S)
            raise NoConnection(f"no answer in {NO_ANSWER_S:g} s")
        server = self.servers[address]
        if not server.is_up:
            raise NoConnection("connection refused")
        return Wire(self, party, server)

    async def _travel(self, party: Party) -> None:
        await asyncio.sleep(self.world.latency_s() * party.distance)
        if self.world.is_over:
            raise asyncio.CancelledError

    async def carry(self, party: Party, server: Server, exchange: Exchange) -> None:
        """Bring a request to its server, or lose it, or bring it late while its sender is told that it is lost."""
        await self._travel(party)
        self.sent = [*self.sent[1 - KEPT :], exchange]
        fault = self._fault(party, exchange, server, "request")
        if fault == "crash":
            party.die()
            await asyncio.sleep(0)  # from which nobody returns
        if fault == "lost":
            await self._lose(exchange, self.dice.choice(["at once", "late", "late", "silently"]))
        if not server.is_up:
            raise Lost("the connection was reset")
        if not self.world.is_calm and self.dice.random() < REPEATED and exchange.verb != "claim":
            self.bring_late(exchange)
        self.door.came(exchange)
        server.accept(exchange)

    def _fault(self, party: Party, exchange: Exchange, server: Server, what: str) -> str | None:
        fault = "lost" if self.is_cut(party, server.address) else self.world.draw_fault(party)
        if fault is not None:
            self.world.counts[f"{what}: {fault}"] += 1
            self.world.note(party.name, f"{fault} on the network: {what} {exchange.verb}")
        return fault

    async def _lose(self, exchange: Exchange, how: str) -> None:
        if how == "late":
            self.bring_late(exchange)
        if how == "silently" and not self.world.is_calm:
            await exchange.answer  # nothing ends it but its caller's patience, or a calm network
        raise Lost("the connection was reset")

    async def bring_back(self, party: Party, exchange: Exchange) -> None:
        """Bring the answer to whoever asked."""
        self.door.answered(exchange)
        await self._travel(party)
        fault = self.world.draw_fault(party)
        if fault is None:
            return
        self.world.counts[f"answer: {fault}"] += 1
        self.world.note(party.name, f"{fault} on the network: answer to {exchange.verb}")
        if fault == "crash":
            party.die()
            await asyncio.sleep(0)
        if self.dice.random() < 0.4 and not self.world.is_calm:
            exchange.answer = self.world.loop.create_future()
            await exchange.answer
        raise Lost("the connection was reset")

    def hang_up(self, exchange: Exchange) -> None:
        """The server learns that nobody waits any more; not always soon."""
        if exchange.gone.is_set():
            return
        after_s = self.world.latency_s() if self.dice.random() < 0.8 else self.dice.uniform(1.0, 20.0)
        self.world.loop.call_later(after_s, exchange.gone.set)

    def forget(self, party: Party) -> None:
        """A host has died: its connections end."""
        for exchange, owner in self.under_way.items():
            if owner is party:
                self.hang_up(exchange)

    def bring_late(self, exchange: Exchange) -> None:
        """A request arrives later than newer ones, at any server; nobody waits for what it is answered."""
        self.world.counts["brought late"] += 1
        late = exchange.again()
        self.world.loop.call_later(self.dice.choice([0.01, 0.5, 3.0, 15.0, 40.0]), self._arrive, late)

    def _arrive(self, exchange: Exchange) -> None:
        live = self.live()
        if live and not self.world.is_over:
            self.world.note("network", f"brings {exchange.verb} late")
            self.dice.choice(live).accept(exchange)

    # ------------------------------------------------------------ tokens

    async def token_for(self, node: str) -> str:
        """The token of a node, which an operator makes if it has none."""
        secret = node.ljust(43, "x")

        async def work(session: Session) -> str:
            bounds = Bounds(node_id=await ensure_node(session, node, None))
            known = await tokens.valid_of_node(session, bounds.node_id or 0)
            if known:
                return text_of(known[0].id, secret)
            facts = {"name": node, "role": Role.WORKER, "digest": digest_of(secret), "lives_s": None}
            made = await tokens.add_token(session, **facts, bounds=bounds)  # type: ignore[arg-type]
            return text_of(made.id, secret)

        return await self._operators.transact(work)
