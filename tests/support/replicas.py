"""A replica of a database in this process: its feeder asks the real verbs, and the test may step in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from aaiclick.clock import utc_now
from aaiclick.errors import CoordinatorUnreachable
from aaiclick.orchestration.coordinator.http.protocol import MSGPACK, Ask, read, written
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.models.token import Token
from aaiclick.orchestration.rules import settled_events
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.replicas import applying
from aaiclick.orchestration.store.replicas.replicated import REPLICATED, Choice, key_of, read_page
from aaiclick.orchestration.store.session import Session
from aaiclick.server.node.database_room import DatabaseRoom
from aaiclick.server.node.verbs import VERBS, Desk
from aaiclick.server.replicas.feeder import Feeder
from aaiclick.server.replicas.files import open_replica
from aaiclick.server.replicas.progress import Progress
from tests.support.band import filled
from tests.support.orchestra import Orchestra, failing, make

__all__ = ["MOVING", "Fed", "contents", "differences", "fed", "replica", "some_jobs", "write"]

T = TypeVar("T")

MOVING = ("jobs", "groups", "tasks", "runs", "events")
"""Tables that are the same at once when all events were taken over."""

WHO = Token(1, "replica", Role.REPLICA, utc_now(), None, None, None)


class Wire:
    """Calls of a replica to a coordinator: carried as bytes, but not over a network."""

    def __init__(self, band: Orchestra) -> None:
        self.desk = Desk(band.coordinator, DatabaseRoom(1), asyncio.Event())
        self.asked = Counter[str]()
        self.away = False
        self.before: dict[str, Callable[[Any], Awaitable[object]]] = {}
        """Called before a verb is answered, with what is asked."""
        self.after: dict[str, Callable[[Any], Awaitable[object]]] = {}
        """Called once a verb was answered, before the replica has the answer."""

    async def ask(self, verb: str, asked: Ask, kind: type[T]) -> T:
        if self.away:
            raise CoordinatorUnreachable(url="http://coordinator", cause="it is away")
        self.asked[verb] += 1
        if verb in self.before:
            await self.before[verb](asked)
        sent = read(written(asked, MSGPACK), MSGPACK, VERBS[verb].asks)
        answer = written(await VERBS[verb].answer(self.desk, WHO, sent), MSGPACK)
        if verb in self.after:
            await self.after[verb](asked)
        return read(answer, MSGPACK, kind)


class Fed(Feeder):
    """A feeder that is driven by its test."""

    wire: Wire

    async def catch_up(self) -> None:
        """Take all that is settled."""
        while self.progress.state.looking or not self.progress.state.installation or await self.follow():
            if self.progress.state.looking or not self.progress.state.installation:
                await self.compare_all()

    async def compare_the_rest(self) -> None:
        """Look at the small tables, and go through all others once."""
        await self.look()
        self._sweep = Choice("jobs")
        await self.sweep()
        while self._sweep != Choice("jobs"):
            await self.sweep()


@asynccontextmanager
async def fed(band: Orchestra, file: Path) -> AsyncIterator[Fed]:
    """A replica in that file."""
    progress = Progress("http://coordinator")
    database = await open_replica(file, progress.as_of)
    try:
        progress.state = await database.read(applying.read_state)
        wire = Wire(band)
        feeder = Fed(database, wire, progress)
        feeder.wire = wire
        yield feeder
    finally:
        await database.close()


async def contents(database: Database, name: str) -> dict[Any, Any]:
    """All rows of a table as they travel, by their keys."""
    rows = await database.read(lambda session: read_page(session, Choice(name), 1_000_000))
    return {tuple(key_of(REPLICATED[name], row)): row for row in rows}


async def differences(band: Orchestra, replica: Feeder, *names: str) -> list[str]:
    """What is not the same on both sides, in words; nothing if all is."""
    found = []
    for name in names or REPLICATED:
        theirs, ours = await contents(band.database, name), await contents(replica.database, name)
        found += [f"{name} {key}: missing" for key in theirs.keys() - ours.keys()]
        found += [f"{name} {key}: too many" for key in ours.keys() - theirs.keys()]
        both = theirs.keys() & ours.keys()
        found += [f"{name} {key}: {ours[key]} for {theirs[key]}" for key in both if theirs[key] != ours[key]]
    return found


@pytest.fixture
async def replica(band: Orchestra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fed]:
    """A replica of the band. Gaps among the events, which MariaDB leaves by itself, are not waited for."""
    monkeypatch.setattr(settled_events, "PATIENCE_S", 0.0)
    async with fed(band, tmp_path / "replica.db") as opened:
        yield opened


async def write(band: Orchestra, *statements: Any) -> None:
    async def work(session: Session) -> None:
        for statement in statements:
            await session.run(statement)

    await band.database.transact(work)


async def some_jobs(band: Orchestra) -> list[Job]:
    """One that ended, one that failed in its middle, and one that has begun."""
    group = filled("g")
    first = await band.submit(make("a") >> make("b"), group, name="ended")
    await band.drain()
    second = await band.submit(make("c") >> make("d"), name="failed")
    await band.drain(failing("c"))
    third = await band.submit(make("e"), make("f"), name="begun")
    await band.claim(1)
    return [first, second, third]
