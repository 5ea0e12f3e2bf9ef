"""The rows of the catalogue: when each fires next, and who may change it at the same time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from aaiclick.errors import NotFound
from aaiclick.orchestration.coordinator.registered_jobs import upsert_registered_job
from aaiclick.orchestration.rules.schedules.fires import FireOutcome
from aaiclick.orchestration.store.schedules import registered_jobs as store
from aaiclick.orchestration.store.schedules.firing import note_fire
from tests.support.band import SERVERS, band
from tests.support.catalogue import PLAIN, entry_of, fires_of, register
from tests.support.orchestra import LONG_AGO, Orchestra

__all__ = ["band"]


def test_the_next_time_is_that_of_the_zone() -> None:
    now = datetime(2026, 7, 1, 5, tzinfo=UTC)
    assert store.next_time("0 8 * * *", "Europe/Berlin", now) == datetime(2026, 7, 1, 6, tzinfo=UTC)
    assert store.next_time(None, "UTC", now) is None


async def test_an_entry_that_is_not_enabled_has_no_next_time(band: Orchestra) -> None:
    assert (await register(band, enabled=False)).next_run_at is None
    assert (await register(band, "b")).next_run_at is not None
    assert (await register(band, "c", None)).next_run_at is None


async def test_what_waits_for_a_disabled_entry_is_left_out(band: Orchestra) -> None:
    entry = await register(band)
    await band.database.transact(
        lambda session: note_fire(session, entry.id, LONG_AGO, FireOutcome.QUEUED, None, LONG_AGO)
    )
    await band.database.transact(lambda session: store.set_enabled(session, "a", False))
    assert [fire.outcome for fire in await fires_of(band)] == [FireOutcome.SKIPPED]


async def test_an_entry_that_is_not_there_cannot_be_enabled(band: Orchestra) -> None:
    with pytest.raises(NotFound):
        await band.database.transact(lambda session: store.set_enabled(session, "a", True))
    assert await band.database.transact(lambda session: store.lock_registered_job(session, entry_id=5)) is None


@SERVERS
async def test_changes_of_one_entry_wait_for_each_other(band: Orchestra) -> None:
    """Both read «enabled» and one writes what it read: a change would be lost without the lock."""
    await register(band)
    facts = {"name": "a", "entrypoint": PLAIN, "schedule": "5 5 * * *", "timezone": "UTC", "default_kwargs": "{}"}
    async with band.transaction() as disabling:
        await store.set_enabled(disabling, "a", False)
        changing = asyncio.create_task(upsert_registered_job(band.database, facts))
        await band.until_waiting()
    await changing
    entry = await entry_of(band)
    assert (entry.enabled, entry.schedule, entry.next_run_at) == (False, "5 5 * * *", None)
