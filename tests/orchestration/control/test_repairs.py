"""Each repair does all there is to do, in bounded steps, and nothing when there is nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from aaiclick.orchestration.control import repairs
from aaiclick.orchestration.coordinator import direct
from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.moves import queue, ripples
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.tables import events
from tests.support.band import band
from tests.support.orchestra import LONG_AGO, Orchestra, make

__all__ = ["band"]


async def test_with_nothing_to_do_they_do_nothing(band: Orchestra) -> None:
    await band.submit(make("a"))
    await band.claim()
    assert await repairs.end_dead_sessions(band.database) == 0
    assert await repairs.recover_lost_runs(band.database) == 0
    assert await repairs.promote_due_tasks(band.database) == 0
    assert await repairs.work_off_ripples(band.database) == 0
    assert await repairs.end_overdue_jobs(band.database) == 0
    assert await repairs.end_abandoned_jobs(band.database) == 0
    assert await repairs.mend_stuck_jobs(band.database) == 0


async def test_ripples_are_worked_off_to_their_end(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripples, "STEP", 2)
    first, group = make("first"), Group("g")
    for number in range(7):
        make(f"t{number}", group_id=group.id)
    first >> group
    job = await band.submit(first, group)
    monkeypatch.setattr(direct, "work_ripples", _not_now)
    await band.complete(*await band.claim())
    assert await band.ripples()
    assert await repairs.work_off_ripples(band.database) > 1
    assert await band.ripples() == []
    assert len(await band.ready_names()) == 7
    assert (await band.job(job)).status == "running"


async def _not_now(*_: object) -> None:
    """The process died here."""


async def test_a_repair_stops_after_its_share(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairs, "ROUNDS_MAX", 3)
    calls = 0

    async def endless(session: object) -> int:
        nonlocal calls
        calls += 1
        return 1

    monkeypatch.setattr(queue, "promote_due", endless)
    assert await repairs.promote_due_tasks(band.database) == 3
    assert calls == 3


async def test_events_are_counted_in_bounded_steps(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        await band.submit(make(name))
    assert await repairs.count_events(band.database) == 0
    await band.database.transact(lambda session: session.run(update(events).values(at=LONG_AGO)))
    monkeypatch.setattr(metrics, "STEP", 1)
    monkeypatch.setattr(repairs, "COUNT_STEPS_MAX", 2)
    assert await repairs.count_events(band.database) > 0
    assert await band.database.read(metrics.is_behind)
    assert await repairs.count_events(band.database) > 0
    assert not await band.database.read(metrics.is_behind)
