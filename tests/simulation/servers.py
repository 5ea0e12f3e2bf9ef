"""Simulated servers: the real road of workers and control loop, in processes that crash, hang and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import msgspec
from starlette.exceptions import HTTPException

from aaiclick.config import settings
from aaiclick.errors import AaiclickError
from aaiclick.ids import new_id
from aaiclick.orchestration import connections
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.coordinator.http.connection import Answer
from aaiclick.orchestration.coordinator.http.protocol import MSGPACK, read, unpacked
from aaiclick.server.node.database_room import Busy, DatabaseRoom
from aaiclick.server.node.node_tokens import NodeTokens
from aaiclick.server.node.road import NodeRoad
from aaiclick.server_address import Address
from tests.simulation.host import OF_HOST, RECONCILERS_HERE, SkewedClock
from tests.simulation.loop import Gate
from tests.simulation.state import Away, SimulatedDatabase
from tests.simulation.world import World

ASKING: ContextVar[int | None] = ContextVar("ASKING", default=None)
"""For whom a server does what it does."""

PLACES = (2, 4, 20)
"""How many calls may be in the database of a server: few of them are sent away, some, or none."""

UNAVAILABLE, FAULT = 503, 500

ANSWERED = (Away, AaiclickError, HTTPException, Busy)
"""What a call may raise inside of a server: it is answered with that."""


class Exchange:
    """One request as it is at a server, and what it is answered."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        """None: the connection ended."""
        self.gone = asyncio.Event()
        """Whether the server knows that nobody waits for the answer."""
        self._is_read = False
        self._status, self._told = 0, dict[str, str]()

    @property
    def verb(self) -> str:
        return self.target.rpartition("/")[2]

    def again(self) -> Exchange:
        """The same request, for whose answer nobody waits."""
        other = Exchange(self.method, self.target, self.headers, self.body)
        other.gone.set()
        return other

    def plain_body(self) -> bytes:
        return unpacked(self.body) if "content-encoding" in self.headers else self.body

    def asked(self, kind: type[Any]) -> Any:
        return read(self.plain_body(), MSGPACK, kind)

    @property
    def worker(self) -> int | None:
        found = msgspec.msgpack.decode(self.plain_body()).get("worker")
        return found if isinstance(found, int) else None

    # ------------------------------------------------------------ as the road sees it

    @property
    def scope(self) -> dict[str, Any]:
        listed = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        return {
            "type": "http",
            "method": self.method,
            "path": self.target,
            "query_string": b"",
            "headers": [*listed, (b"content-length", b"%d" % len(self.body))],
        }

    async def receive(self) -> dict[str, Any]:
        if not self._is_read:
            self._is_read = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._told = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.end(Answer(self._status, self._told, message["body"]))

    def end(self, answer: Answer | None) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class Hints:
    """What a server hears: too late, twice, or never."""

    trouble = ""

    def __init__(self, world: World) -> None:
        self._world = world
        self._heard: set[str] = set()
        self._something = asyncio.Event()

    def tell(self, hints: Iterable[str]) -> None:
        self._world.spread(sorted(hints))

    def hear(self, hint: str) -> None:
        self._heard.add(hint)
        self._something.set()

    async def listen(self) -> None:
        """It listens always."""

    async def flush(self) -> None:
        """There is nothing to wait for."""

    async def close(self) -> None:
        """There is nothing to give back."""

    async def wait(self, timeout_s: float) -> frozenset[str]:
        try:
            async with asyncio.timeout(timeout_s):
                await self._something.wait()
        except TimeoutError:
            return frozenset()
        self._something.clear()
        heard, self._heard = frozenset(self._heard), set()
        return heard


class Server:
    """One server, from its start to its end. Whatever it remembers goes with it."""

    can_die = True
    distance = 0.15
    """Servers are near their database."""

    def __init__(self, world: World, address: Address, name: str) -> None:
        self.world, self.address, self.name = world, address, name
        self.is_dead = False
        self.clock = SkewedClock(world)
        self.gate = Gate(name)
        self.gate.on_failure = self._failed
        self.database = SimulatedDatabase(world, self)
        self.database.url = "postgresql://simulated"  # so that ids are granted by the state, not by files
        self.hints = Hints(world)
        self.ending = asyncio.Event()
        self.road: NodeRoad | None = None
        self.exchanges: dict[Exchange, None] = {}

    @property
    def worker_id(self) -> int | None:
        return ASKING.get()

    @property
    def is_up(self) -> bool:
        return self.road is not None and not self.is_dead

    def start(self) -> None:
        self.world.note(self.name, "starts")
        self.gate.begin(self._live)

    async def _live(self) -> None:
        OF_HOST.set(self)
        self._opened = connections._Open(self.database)
        coordinator = DirectCoordinator(self.database, draw=self.world.dice.random, clock=self.clock, bus=self.hints)
        road = NodeRoad(coordinator, self.ending)
        road.tokens = NodeTokens(self.clock)
        road.desk.room = DatabaseRoom(self.world.dice.choice(PLACES))
        session_s = settings().session_s
        control = Control(self.database, new_id(), session_s=session_s, clock=self.clock, reconcilers=RECONCILERS_HERE)
        async with road:
            self.road = road
            await control.run()

    # ------------------------------------------------------------ requests

    def accept(self, exchange: Exchange) -> None:
        """Begin to answer; while the server hangs, requests wait in its sockets."""
        self.exchanges[exchange] = None
        self.gate.begin(lambda: self._answer(exchange))

    async def _answer(self, exchange: Exchange) -> None:
        assert self.road is not None
        OF_HOST.set(self)
        ASKING.set(exchange.worker)
        connections._open.set(self._opened)
        self.world.counts[f"{exchange.verb} at a server"] += 1
        try:
            await self.road(exchange.scope, exchange.receive, exchange.send)
        except Away as error:
            status = self.world.dice.choice([UNAVAILABLE, FAULT])
            exchange.end(Answer(status, {"content-type": "text/plain", "retry-after": "1"}, str(error).encode()))
        except asyncio.CancelledError:
            exchange.end(None)
            raise
        finally:
            del self.exchanges[exchange]

    # ------------------------------------------------------------ what may happen to it

    def die(self) -> None:
        """Its memory is gone, and its connections end; what hangs on a dead machine is noticed by time-outs alone."""
        self.is_dead = True
        self.gate.shut()
        is_silent = not self.world.is_calm and self.world.dice.random() < 0.3
        for exchange in self.exchanges if not is_silent else ():
            exchange.end(None)
        assert self.world.network is not None
        self.world.network.miss(self)

    def _failed(self, error: BaseException) -> None:
        if not (self.world.is_over or isinstance(error, ANSWERED)):
            self.world.fail(f"a coroutine of {self.name} failed: {type(error).__name__}: {error}")
