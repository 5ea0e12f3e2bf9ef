"""Expectations that were not met leave events with the report that counts, and with no other."""

from __future__ import annotations

from dataclasses import replace

from aaiclick.orchestration.models import Claim, Report
from aaiclick.orchestration.store.claims.expectations import read_unmet
from tests.support.band import band
from tests.support.growing import grown
from tests.support.orchestra import Orchestra, done, failure, make

__all__ = ["band"]

UNMET = (("expect_warned", "rows (1): 2 found"), ("expect_failed", "unique id (once each): 2 of 2 rows"))


async def told(band: Orchestra, claim: Claim) -> list[tuple[str, str, int, str]]:
    rows = await band.database.read(lambda session: read_unmet(session, claim.job_id, claim.task_id, 10))
    return [(row.move, row.detail, row.epoch, row.status) for row in rows]


async def test_a_report_that_counts_leaves_them_once(band: Orchestra) -> None:
    await band.submit(make("a"), make("b"))
    broken, warned = await band.claim(limit=2, begins=2)
    first: Report = replace(failure(broken), unmet=UNMET)
    await band.report(first, replace(done(warned), unmet=UNMET[:1]))
    await band.report(first)
    await band.report(replace(done(broken), unmet=UNMET))  # it says something else
    assert await told(band, broken) == [(*each, broken.epoch, "failed") for each in UNMET]
    assert await told(band, warned) == [(*UNMET[0], warned.epoch, "completed")]


async def test_runs_that_made_tasks_leave_them_too(band: Orchestra) -> None:
    await band.submit(make("a"))
    (claim,) = await band.claim(begins=1)
    await band.report(replace(grown(claim, make("child")), unmet=UNMET[:1]))
    assert await told(band, claim) == [(*UNMET[0], claim.epoch, "completed")]
