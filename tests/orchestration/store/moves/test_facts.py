"""What a batch of endings comes to, for the jobs and for those it keeps from beginning."""

from __future__ import annotations

from aaiclick.orchestration.store.dialects.contract import EndedTask
from aaiclick.orchestration.store.moves.facts import DOOM, RELEASE, Sources, Tally, postpone
from tests.support.band import band
from tests.support.orchestra import Orchestra

__all__ = ["band"]


def test_critical_tasks_that_failed_or_never_ran_count_as_failures_of_their_job() -> None:
    tally = Tally()
    ends = [("completed", True), ("failed", True), ("failed", False), ("upstream_failed", True)]
    tally.add(EndedTask(task, 9, None, 0, critical, status) for task, (status, critical) in enumerate(ends))
    assert tally.counts == {9: {"open_tasks": -4, "completed_tasks": 1, "failed_tasks": 2, "failed_critical": 2}}


def test_the_first_failure_is_to_blame() -> None:
    tally = Tally()
    tally.blame(5, 1)
    tally.blame(5, 2)
    tally.blame(None, 3)
    assert tally.cause_of == {5: 1}


async def test_what_is_too_much_is_left_with_its_cause(band: Orchestra) -> None:
    tally = Tally(left=2, job_of={1: 9, 2: 9, 3: 9}, cause_of={3: 7})
    sources = Sources(release={1: 2, 2: 3}, doom={3: 1})
    rows = await band.database.transact(lambda session: postpone(session, sources, tally))
    assert [(row["kind"], row["node_id"], row["cause_id"]) for row in rows] == [(RELEASE, 2, None), (DOOM, 3, 7)]
    assert (sources.release, sources.doom, tally.left) == ({1: 2}, {}, 0)
