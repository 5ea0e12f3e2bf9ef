"""Counters and histograms by the names of jobs: a bounded number of them, and no number ever falls."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.rules import metrics as rules
from aaiclick.orchestration.rules.metrics import OTHERS, JobMetrics
from aaiclick.orchestration.store.moves.clears import clear_tasks
from aaiclick.orchestration.store.reading.job_metrics import read_stored
from aaiclick.orchestration.store.tables import job_metrics, jobs
from tests.orchestration.store.reading.test_metrics import settle, shown
from tests.orchestration.store.retention.test_job_ages import grow_old, remove
from tests.support.band import band
from tests.support.catalogue import register
from tests.support.orchestra import Orchestra, failing, make

__all__ = ["band"]

CREATED, COMPLETED, FAILED = "jobs_created_total", "jobs_completed_total", "jobs_failed_total"


async def by_name(band: Orchestra) -> dict[str, JobMetrics]:
    return {job.name: job for job in (await shown(band)).jobs}


async def created(band: Orchestra) -> dict[str, int]:
    return {name: job.counters[CREATED] for name, job in (await by_name(band)).items()}


async def is_whole(band: Orchestra) -> bool:
    """Whether the names together are all there is."""
    found = await shown(band)
    whole = {name: sum(job.counters[name] for job in found.jobs) for name in (CREATED, COMPLETED, FAILED)}
    durations = sum(job.histograms["job_duration_seconds"].count for job in found.jobs)
    whole_too = durations == found.histograms["job_duration_seconds"].count
    return whole_too and whole == {name: found.counters[name] for name in whole}


async def test_each_name_has_its_own_before_and_after_they_are_counted_for_good(band: Orchestra) -> None:
    for name in ("a", "b", "a"):
        await band.submit(make("t" if name == "a" else "bad"), name=name)
    await band.drain(failing("bad"))

    async def look() -> dict[str, tuple[int, ...]]:
        return {
            name: (*(job.counters[each] for each in (CREATED, COMPLETED, FAILED)), _durations(job))
            for name, job in (await by_name(band)).items()
        }

    expected: dict[str, tuple[int, ...]] = {"a": (2, 2, 0, 2), "b": (1, 0, 1, 1), OTHERS: (0, 0, 0, 0)}
    assert await look() == expected
    assert await is_whole(band)
    young = await band.submit(make("t"), name="a")
    await settle(band)
    expected["a"] = (3, 2, 0, 2)
    assert {name: numbers[:3] for name, numbers in (await look()).items()} == {
        name: numbers[:3] for name, numbers in expected.items()
    }
    assert await is_whole(band)
    assert young.name in await band.database.read(read_stored)


def _durations(job: JobMetrics) -> int:
    return job.histograms["job_duration_seconds"].count


async def test_a_run_that_was_cleared_counts_for_its_name(band: Orchestra) -> None:
    task = make("t")
    await band.submit(task, name="a")
    await band.drain()
    await band.database.transact(lambda session: clear_tasks(session, [task.id]))
    await band.drain()
    assert _durations((await by_name(band))["a"]) == 2
    assert await is_whole(band)


async def test_no_more_names_than_there_is_room_for(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "JOBS_SHOWN_MAX", 3)
    monkeypatch.setattr(rules, "UNREGISTERED_SHOWN_MAX", 2)
    for name in ("a", "b", "c", "d", "a"):
        await band.submit(make(), name=name)
    before = await created(band)
    assert before == {"a": 2, "b": 1, OTHERS: 2}
    await settle(band)
    assert await created(band) == before
    await band.submit(make(), name="c")
    assert await created(band) == before | {OTHERS: 3}
    entry = await register(band, "nightly")
    job = await band.submit(make(), name="nightly")
    await link(band, job.id, entry.id)
    assert await created(band) == before | {OTHERS: 3, "nightly": 1}
    await settle(band)
    assert await created(band) == before | {OTHERS: 3, "nightly": 1}
    assert {row.job for row in await band.rows(select(job_metrics.c.job))} == {"a", "b", "nightly"}


async def link(band: Orchestra, job_id: int, entry_id: int) -> None:
    mine = update(jobs).where(jobs.c.id == job_id).values(registered_job_id=entry_id)
    await band.database.transact(lambda session: session.run(mine))


async def test_they_outlive_their_jobs(band: Orchestra) -> None:
    await band.submit(make("t"), name="a")
    await band.drain()
    await grow_old(band)
    before = (await shown(band)).jobs
    assert await remove(band) == 1
    assert (await shown(band)).jobs == before
    assert [job.name for job in before] == ["a", OTHERS]


async def test_names_that_differ_in_case_or_accent_are_different(band: Orchestra) -> None:
    for name in ("e", "E", "é", 'a "b" \\ c', "日本"):
        await band.submit(make(), name=name)
    await settle(band)
    assert await created(band) == {"e": 1, "E": 1, "é": 1, 'a "b" \\ c': 1, "日本": 1, OTHERS: 0}
