"""The state of a simulation: SQLite in memory, under a database whose calls can be late, lost or cut off."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from aaiclick.errors import AaiclickError
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.definitions import fleet_tables as fleet_tables  # its table joins the others
from aaiclick.orchestration.store.dialects.contract import Connection
from aaiclick.orchestration.store.dialects.sqlite import SqliteDialect
from aaiclick.orchestration.store.inline import InlineEngine
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import metadata

if TYPE_CHECKING:
    from tests.simulation.world import Party, World

T = TypeVar("T")

UNCHECKED = tuple(
    f"{verb} {table} " for verb in ("UPDATE", "INSERT INTO") for table in ("workers", "terms", "reconcilers")
)
"""Writes after which the graph need not be counted again."""


class Away(ConnectionError):
    """The database does not answer."""


class Kept(sqlite3.Connection):
    """The one connection: whoever throws it away gets it again, since with it all data would go."""

    def close(self) -> None:
        if self.in_transaction:
            self.rollback()


@cache
def _empty_state() -> bytes:
    """A database with the schema and nothing in it."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    metadata.create_all(engine)
    driver = engine.raw_connection().driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver.serialize()


class Dialect(SqliteDialect):
    """SQLite in virtual time; with one call at a time, nothing is ever locked."""

    def is_transient(self, error: BaseException) -> bool:
        return False


_connections: list[Kept] = []


@cache
def _engine() -> InlineEngine:
    """One engine for all worlds, one after the other: it remembers the statements that it has compiled."""
    engine = InlineEngine("sqlite://")
    options: dict[str, Any] = {"poolclass": StaticPool, "isolation_level": "AUTOCOMMIT"}
    engine.sync_engine = create_engine("sqlite://", creator=lambda: _connections[-1], **options)
    return engine


def _engine_of(driver: Kept) -> InlineEngine:
    _engine().sync_engine.dispose()
    _connections[:] = [driver]
    return _engine()


class State:
    """The rows, read here without any ceremony."""

    def __init__(self) -> None:
        self.driver = sqlite3.connect(":memory:", factory=Kept, isolation_level=None)
        self.driver.deserialize(_empty_state())
        self.driver.set_trace_callback(self._saw)
        self.engine = _engine_of(self.driver)
        self.is_changed = False
        """Whether rows of the graph were written since somebody looked."""

    def _saw(self, sql: str) -> None:
        if sql.startswith(("INSERT", "UPDATE", "DELETE")) and not sql.startswith(UNCHECKED):
            self.is_changed = True

    def rows(self, sql: str, *values: Any) -> list[Any]:
        return self.driver.execute(sql, values).fetchall()

    def ids(self, sql: str, *values: Any) -> list[int]:
        return [row[0] for row in self.driver.execute(sql, values)]

    def intern(self, needs: Sequence[str]) -> tuple[int, ...]:
        """Give each of these needs a lane; the first are those of plain tasks."""
        self.driver.executemany(
            "INSERT INTO lanes (id, digest, needs) VALUES (?, ?, ?)",
            [(lane, need, need) for lane, need in enumerate(needs) if lane],
        )
        return tuple(range(len(needs)))

    def close(self) -> None:
        self.engine.sync_engine.dispose()
        sqlite3.Connection.close(self.driver)


class SimulatedDatabase(Database):
    """One party's way to the state. A call takes time before it arrives and after it was done; it may get lost on
    either way, and whoever asked may die in either moment."""

    def __init__(self, world: World, party: Party) -> None:
        super().__init__("sqlite:///simulated", world.state.engine, world.dialect)
        self.world = world
        self.party = party
        self.on_hints = lambda hints: world.spread(sorted(hints))

    async def read(self, work: Callable[[Session], Awaitable[T]], *, stale_ok: bool = False) -> T:
        await self._travel("before", _name(work))
        with self.world.watched(self.party, _name(work), refusals=(AaiclickError,)):
            answer = await super().read(work, stale_ok=stale_ok)
        await self._travel("after", _name(work))
        return answer

    async def write_one(self, work: Callable[[Session], Awaitable[T]]) -> T:
        raise AssertionError("SQLite claims in several statements")

    async def transact(self, work: Callable[[Session], Awaitable[T]]) -> T:
        asked = self.world.loop.time()
        await self._travel("before", _name(work))
        with self.world.watched(self.party, _name(work), refusals=(AaiclickError,)):
            answer = await super().transact(work)
        self.world.committed(self.party, _name(work), asked)
        await self._travel("after", _name(work))
        return answer

    def _rollback(self, connection: Connection) -> asyncio.Future[None]:  # type: ignore[override]
        """At once, without a turn for others: all share one connection, and would be in what is not undone yet."""
        self.world.state.driver.rollback()
        undone = self.world.loop.create_future()
        undone.set_result(None)
        return undone

    async def _travel(self, when: str, what: str) -> None:
        await asyncio.sleep(self.world.latency_s() * self.party.distance)
        if self.world.is_over:
            raise asyncio.CancelledError
        if when == "before" and self.world.is_away:
            raise Away("an outage")
        fault = self.world.draw_fault(self.party)
        if fault is None:
            return
        self.world.note(self.party.name, f"{fault} {when} {what}")
        self.world.counts[f"{fault} {when}"] += 1
        if fault == "crash":
            self.party.die()
            await asyncio.sleep(0)  # from which nobody returns
        raise Away(f"lost {when}")


def _name(work: Any) -> str:
    """What the call is about, from the name of its function."""
    while isinstance(work, functools.partial):
        work = work.func
    parts = [part for part in work.__qualname__.split(".") if part not in ("<locals>", "<lambda>", "work")]
    return str(parts[-1]).strip("_")
