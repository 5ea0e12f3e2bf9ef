"""Workers' sessions: they end by the database's time, and what is over stays over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
from sqlalchemy import ColumnElement, literal

from aaiclick.config import settings
from aaiclick.orchestration.models import WorkerStatus
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.definitions.column_types import UtcTime
from tests.support.orchestra import Orchestra, orchestra


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_a_session_ends_after_its_length_by_the_databases_time(stage: Orchestra) -> None:
    before = await stage.database.read(lambda session: session.now())
    worker = await stage.coordinator.register(hostname="käse-1", pid=4_000_000, name="Größe")
    after = await stage.database.read(lambda session: session.now())
    assert before <= worker.started_at <= after
    assert worker.expires_at - worker.started_at == timedelta(seconds=settings().session_s)
    (found, _) = await stage.database.read(lambda session: workers.list_workers(session, None))
    assert found == worker
    assert (found.status, found.hostname, found.pid, found.name) == ("active", "käse-1", 4_000_000, "Größe")


async def test_a_beat_renews_the_session(stage: Orchestra) -> None:
    await stage.coordinator.beat(stage.worker)
    (before,) = await stage.database.read(lambda session: workers.list_workers(session, None))
    assert (await stage.coordinator.beat(stage.worker)).alive
    (after,) = await stage.database.read(lambda session: workers.list_workers(session, None))
    assert after.last_heartbeat > before.last_heartbeat
    assert after.expires_at > before.expires_at
    lives = after.expires_at - after.last_heartbeat
    assert abs(lives - (before.expires_at - before.last_heartbeat)) < timedelta(seconds=1)


async def test_two_beats_at_the_same_instant_both_count(stage: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is found and not changed counts as renewed."""
    now = await stage.database.read(lambda session: session.now())

    def frozen(*_: object) -> ColumnElement[datetime]:
        return literal(now, UtcTime)

    for clock in ("now", "later"):
        monkeypatch.setattr(type(stage.database.dialect), clock, frozen)
    assert [(await stage.coordinator.beat(stage.worker)).alive for _ in range(2)] == [True, True]


async def test_what_is_over_stays_over(stage: Orchestra) -> None:
    assert await stage.coordinator.deregister(stage.worker)
    assert not await stage.coordinator.deregister(stage.worker)
    assert not (await stage.coordinator.beat(stage.worker)).alive
    (stopped,) = await stage.database.read(lambda session: workers.list_workers(session, WorkerStatus.STOPPED))
    assert stopped.expires_at <= await stage.database.read(lambda session: session.now())


async def test_a_worker_that_never_was_has_no_session(stage: Orchestra) -> None:
    assert not (await stage.coordinator.beat(12345)).alive
    assert not await stage.coordinator.deregister(12345)


async def test_workers_are_listed_newest_first_and_by_status(stage: Orchestra) -> None:
    second = await stage.coordinator.register(hostname="h", pid=1)
    third = await stage.coordinator.register(hostname="h", pid=1)
    await stage.coordinator.deregister(second.id)

    async def listed(status: WorkerStatus | None) -> list[int]:
        return [worker.id for worker in await stage.database.read(lambda s: workers.list_workers(s, status))]

    assert await listed(None) == [third.id, second.id, stage.worker]
    assert await listed(WorkerStatus.ACTIVE) == [third.id, stage.worker]
    assert await listed(WorkerStatus.IDLE) == []
