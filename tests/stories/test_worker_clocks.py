"""Workers whose clocks are an hour wrong: the database's time is the only one that counts."""

from __future__ import annotations

from sqlalchemy import select

from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store import tables
from tests.support.fleet import Fleet, fleet, servers_only

__all__ = ["fleet"]

HOUR_S = 3600


@servers_only
async def test_clocks_that_are_an_hour_wrong_change_nothing(fleet: Fleet) -> None:
    for shift_s in (HOUR_S, -HOUR_S):
        program = ("-m", "tests.support.wrong_clock", str(shift_s))
        await fleet.session_of(fleet.start_worker(program=program, concurrency=2))
    later = RetryPolicy(max_retries=1, delay_s=0.3, jitter=False)
    flaky = [fleet.errand("fails", f"fails{number}", kwargs={"times": 1}, retry=later) for number in range(4)]
    waiting = [fleet.errand("waits", f"wait{number}") for number in range(4)]
    job = await fleet.submit(*waiting, timeout_s=600)
    other = await fleet.submit(*flaky, *fleet.quick(20), timeout_s=600)
    began = await fleet.noted("began", 4, *(task.name for task in waiting))
    assert len({note.pid for note in began}) == 4
    fleet.let()
    assert {(await fleet.end_of(job)).status, (await fleet.end_of(other)).status} == {"completed"}
    now = await fleet.database.read(lambda session: session.now())
    for row in [*(await fleet.tasks(job)).values(), *(await fleet.tasks(other)).values()]:
        assert (row.lost_count, row.crash_count) == (0, 0)
        for moment in (row.claimed_at, row.started_at, row.completed_at):
            assert abs((now - moment).total_seconds()) < HOUR_S / 2
    for row in await fleet.rows(select(tables.workers)):
        assert row.status == "active"
        assert 0 < (row.expires_at - now).total_seconds() < HOUR_S / 2
