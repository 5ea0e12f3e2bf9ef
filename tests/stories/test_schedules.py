"""Schedules through real workers that are killed, and through leaders that crash at any statement."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, select

from aaiclick.orchestration.control.schedules import Scheduler
from aaiclick.orchestration.rules.schedules.fires import FireOutcome
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.rules.values.encoding import encode_kwargs
from aaiclick.orchestration.store.schedules import backfills
from aaiclick.orchestration.store.schedules import registered_jobs as store
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs
from tests.support.band import band
from tests.support.catalogue import DAILY, come, count_jobs, days_ago, fires_of, register
from tests.support.fleet import Fleet, eventually, fleet
from tests.support.orchestra import Orchestra

__all__ = ["band", "fleet"]

NIGHTLY = """
from aaiclick.orchestration import job, task

@task
def double(x: int) -> int:
    return 2 * x

@job
def nightly(x: int):
    return [double(x), double(x + 1)]
"""


async def test_a_scheduled_workflow_grows_in_a_worker(fleet: Fleet) -> None:
    (fleet.home / "nightly_flow.py").write_text(NIGHTLY)
    fleet.env["PYTHONPATH"] += f"{os.pathsep}{fleet.home}"
    kwargs = encode_kwargs({"x": 5}, bytes_max=1000)
    await register(fleet, entrypoint="nightly_flow.nightly", default_kwargs=kwargs)
    await come(fleet, await days_ago(fleet, 0))
    await fleet.workers(1)
    (fired,) = await _fired(fleet, 1)
    job = await fleet.coordinator.job(fired.job_id)
    assert job is not None
    ended = await fleet.end_of(job)
    assert ended.status == "completed", ended.error
    done = await fleet.job(job)
    assert (done.run_type, done.total_tasks, done.registered_job_id) == ("scheduled", 3, fired.registered_job_id)


async def test_each_time_runs_once_although_whoever_leads_is_killed(fleet: Fleet) -> None:
    fleet.env |= {"AAICLICK_SESSION_SECONDS": "6"}
    members = await fleet.workers(2)
    for number in range(10):
        kwargs = encode_kwargs({"value": number}, bytes_max=1000)
        entry = f"a{number}"
        await register(fleet, entry, entrypoint="errands.quick", default_kwargs=kwargs, missed_runs="all")
        await come(fleet, await days_ago(fleet, 4), entry)
    await _fired(fleet, 1)
    members[0].kill()
    found = await _fired(fleet, 50)
    assert len({fire.job_id for fire in found}) == await count_jobs(fleet) == 50
    job = await fleet.coordinator.job(found[0].job_id)
    assert job is not None
    await fleet.end_of(job)


async def _fired(fleet: Fleet, count: int) -> list[Any]:
    async def enough() -> bool:
        return len(await fires_of(fleet)) >= count

    await eventually(enough, fleet.explain)
    return await fires_of(fleet)


# ---------------------------------------------------------------- crashes at any statement


class Crash(Exception):
    """The process ends here."""


def crash_at(patch: pytest.MonkeyPatch, statement: int) -> None:
    """Let the process end at its n-th statement from now on."""
    left = [statement]

    def crashing(real: Callable[..., Any]) -> Callable[..., Any]:
        async def around(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Crash
            return await real(*args, **kwargs)

        return around

    for name in ("rows", "first", "scalar", "run", "insert"):
        patch.setattr(Session, name, crashing(getattr(Session, name)))


@pytest.mark.parametrize("seed", range(6))
async def test_leaders_that_crash_anywhere_fire_each_time_once(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    policies = ("allow", "skip", "queue")
    entries = [await register(band, policy, overlap=policy, missed_runs="all") for policy in policies]
    await _begin_backfill(band, entries[chance.randrange(3)].id)
    for _ in range(25):
        name = chance.choice(policies)
        if chance.random() < 0.5:
            await come(band, await days_ago(band, chance.randrange(8)), name)
        if chance.random() < 0.2:
            await band.database.transact(partial(store.set_enabled, name=name, enabled=False))
            await band.database.transact(partial(store.set_enabled, name=name, enabled=True))
        with monkeypatch.context() as patch:
            if chance.random() < 0.7:
                crash_at(patch, chance.randrange(1, 60))
            with suppress(Crash):
                await Scheduler(band.database).fire()
        if chance.random() < 0.4:
            await band.complete(*await band.claim(chance.randrange(1, 4)))
        await _check(band)
    await band.drain()
    for _ in range(40):
        await Scheduler(band.database).fire()
        await band.drain()
    assert await _check(band) > 0
    assert not [fire for fire in await fires_of(band) if fire.outcome is FireOutcome.QUEUED]
    assert await band.violations() == []


async def _begin_backfill(band: Orchestra, entry_id: int) -> None:
    start = await days_ago(band, 20)
    facts = {
        "registered_job_id": entry_id,
        "schedule": DAILY,
        "timezone": "UTC",
        "kwargs": "{}",
        "start_at": start,
        "end_at": start + timedelta(days=17),
        "parallel_max": 3,
    }
    await band.database.transact(lambda session: backfills.add_backfill(session, facts))


async def _check(band: Orchestra) -> int:
    """Every job is the run of one time, and every time that ran has one job; gives their number."""
    found = await fires_of(band)
    runs = [fire.job_id for fire in found if fire.outcome is FireOutcome.RUN]
    assert None not in runs
    assert len(set(runs)) == len(runs) == await count_jobs(band)
    assert not [fire for fire in found if fire.outcome is not FireOutcome.RUN and fire.job_id is not None]
    open_jobs = select(func.count()).select_from(jobs).where(jobs.c.status.not_in(sorted(ENDED_JOB)))
    for name in ("skip", "queue"):
        mine = [fire.job_id for fire in found if fire.backfill_id is None and fire.job_id]
        going_on = await band.scalar(open_jobs.where(jobs.c.name == name, jobs.c.id.in_(mine or [0])))
        assert going_on <= 1, name
    return len(runs)
