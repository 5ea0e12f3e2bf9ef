"""A connection is reset at every message of its life: one call fails, the next works, and none stays that is dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TypeVar

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import NullPool

from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Held
from aaiclick.orchestration.store import database as module
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.contract import Connection
from aaiclick.orchestration.store.session import Session
from tests.support.orchestra import Orchestra, make, orchestra
from tests.support.proxy import Call, Proxy, pass_on, proxied

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)

T = TypeVar("T")


@pytest.fixture
async def road(migrated_sql_url: str) -> AsyncIterator[tuple[Proxy, str]]:
    async with proxied(migrated_sql_url) as found:
        yield found


@dataclass
class Life:
    """What a process does with its connection, call by call; a call that fails is made again, once."""

    failed: list[BackendUnreachable] = field(default_factory=list)

    async def call(self, verb: Callable[[], Awaitable[T]]) -> T:
        try:
            return await verb()
        except BackendUnreachable as error:
            self.failed.append(error)
            return await verb()

    async def live(self, url: str, proxy: Proxy) -> None:
        database = await Database.open(url, check=False)  # it connects with its first call
        try:
            await self._work(Orchestra(database, DirectCoordinator(database), 0))
            proxy.judge = pass_on
            await _all_alive(database)
        finally:
            await database.close()

    async def _work(self, stage: Orchestra) -> None:
        state = stage.coordinator
        stage.worker = (await self.call(lambda: state.register(hostname="here", pid=1))).id
        job = await self.call(lambda: stage.submit(make("a") >> make("b"), key="once"))
        for number in count(1):
            await self._step(stage, number)
            if (await self.call(lambda: stage.job(job))).status == "completed":
                return

    async def _step(self, stage: Orchestra, number: int) -> None:
        state, worker = stage.coordinator, stage.worker
        claims = await self.call(lambda: state.claim(worker, limit=1, call=number))
        held = [Held(claim.task_id, claim.epoch) for claim in claims]
        # if the answer was lost, what was claimed is given back here
        await self.call(lambda: state.beat(worker, known_call=number, held=held))
        await self.call(lambda: stage.complete(*claims))


async def _all_alive(database: Database) -> None:
    """Each that is at hand answers, and nobody else keeps one."""
    idle = database._idle
    assert 1 <= len(idle) <= 2
    assert all([await _answers(connection) for connection in idle])
    assert isinstance(database.engine, AsyncEngine)
    assert isinstance(database.engine.pool, NullPool)


async def _answers(connection: Connection) -> bool:
    return bool((await connection.exec_driver_sql("SELECT 7")).scalar() == 7)


@pytest.mark.parametrize("answered", [False, True], ids=["request lost", "answer lost"])
@servers_only
async def test_the_next_call_works_wherever_a_connection_was_reset(road: tuple[Proxy, str], answered: bool) -> None:
    proxy, url = road
    number, told = 0, set()
    while True:
        number += 1
        proxy.reset_at(number, answered=answered)
        life = Life()
        await life.live(url, proxy)
        if proxy.messages < number:
            break
        assert len(life.failed) <= 1, f"message {number}"
        told |= {str(error) for error in life.failed}
    assert number > 20, "it was reset at the greeting, at each set-up, BEGIN, statement and COMMIT"
    assert all("\n" not in line and "SQL:" not in line for line in told)


@servers_only
async def test_callers_at_the_same_time_are_reset_together_and_go_on(road: tuple[Proxy, str]) -> None:
    proxy, url = road
    async with orchestra(url) as stage:
        for _ in range(5):
            failed = await asyncio.gather(*(_asks(stage, proxy, number) for number in range(8)))
            assert any(failed)
            assert not any(await asyncio.gather(*(_asks(stage, None, number) for number in range(8))))
        assert all([await _answers(connection) for connection in stage.database._idle])


async def _asks(stage: Orchestra, proxy: Proxy | None, number: int) -> bool:
    """Whether the call failed; the fourth cuts all connections, its own among them."""

    async def work(session: Session) -> None:
        await session.now()
        if proxy is not None and number == 3:
            proxy.reset_all()
        await session.now()

    try:
        await stage.database.transact(work)
    except BackendUnreachable:
        return True
    return False


@servers_only
async def test_a_beat_renews_its_session_in_one_statement(road: tuple[Proxy, str]) -> None:
    """A connection that went silent between two held the lock of the worker's row, and the next beats waited for it."""
    proxy, url = road
    async with orchestra(url) as stage:
        assert (await stage.coordinator.beat(stage.worker)).alive
        for call in proxy.calls:
            call.sent.clear()
        assert (await stage.coordinator.beat(stage.worker)).alive
    sent = b"".join(message for call in proxy.calls for message in call.sent)
    assert sent
    assert not any(word in sent for word in (b"BEGIN", b"START TRANSACTION", b"COMMIT"))


def _swallow(message: bytes, limit: asyncio.Timeout, call: Call, data: bytes) -> None:
    """The time of whoever waits for the answer is up when the message is on its way."""
    if message in data and limit.when() is None:
        call.silent = True
        limit.reschedule(asyncio.get_running_loop().time())


@pytest.mark.parametrize("message", [b"now", b"COMMIT"])
@servers_only
async def test_whoever_gives_up_on_a_silent_connection_does_not_wait_for_its_end(
    road: tuple[Proxy, str], monkeypatch: pytest.MonkeyPatch, message: bytes
) -> None:
    """A heart has time for one more beat before bodies are asked to end, and none for a goodbye that nobody hears."""
    proxy, url = road
    let_end = asyncio.Event()
    throw_away = module._throw_away

    async def slow(connection: Connection) -> None:
        await let_end.wait()
        await throw_away(connection)

    async def work(session: Session) -> None:
        await session.connection.exec_driver_sql("SELECT 'now'")

    monkeypatch.setattr(module, "_throw_away", slow)
    monkeypatch.setattr(module, "GOODBYE_S", 0.0)
    async with orchestra(url) as stage:

        async def until_nothing_answers() -> None:
            async with asyncio.timeout(None) as limit:
                proxy.judge = partial(_swallow, message, limit)
                await stage.database.transact(work)

        with pytest.raises(TimeoutError):
            await until_nothing_answers()
        proxy.judge = pass_on
        await stage.database.transact(work)
        assert not let_end.is_set()
        let_end.set()
    assert [call.client.is_closing() for call in proxy.calls if call.silent] == [True]
