"""What is left of jobs that are gone goes in steps, and nothing of others."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.retention import job_remains
from aaiclick.orchestration.store.retention.job_remains import (
    count_of,
    ended_among,
    look_for_remains,
    remove_remains,
    runs_of,
)
from aaiclick.orchestration.store.tables import dependencies, gone_jobs, groups, runs, tasks
from tests.orchestration.store.retention.test_job_ages import grow_old, remove
from tests.support.band import SERVERS, band, member
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]

LEFT = (dependencies, tasks, runs, groups, gone_jobs)


async def some_job(band: Orchestra) -> None:
    group, last = Group("g"), make("last")
    member(group, "one")
    member(group, "two")
    group >> last
    await band.submit(group, last)


async def sizes(band: Orchestra) -> list[int]:
    return [await band.scalar(select(func.count()).select_from(table)) for table in LEFT]


async def step(band: Orchestra) -> int:
    remains = await band.database.read(look_for_remains)
    if remains is None:
        return 0
    return (await band.database.transact(lambda session: remove_remains(session, remains))).rows


async def test_all_of_it_goes_in_steps(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_remains, "STEP", 2)
    await some_job(band)
    await band.drain()
    await some_job(band)
    await band.drain()
    await grow_old(band)
    await some_job(band)
    assert await sizes(band) == [3, 9, 6, 3, 0]
    assert await remove(band) == 2
    assert await band.database.read(look_for_remains) is not None
    found, counted = await band.database.read(lambda session: count_of(session, []))
    assert (len(found), counted) == (6, 6)
    taken = 0
    while gone := await step(band):
        assert gone <= 4  # two tasks, each with its run
        taken += 1
    assert taken > 5
    assert await sizes(band) == [1, 3, 0, 1, 0]
    await band.drain()
    assert await band.violations() == []


async def test_the_attempt_that_a_tasks_row_tells_of_is_among_its_runs(band: Orchestra) -> None:
    task = make("a")
    await band.submit(task)
    await band.drain()
    await grow_old(band)
    await remove(band)
    remains = await band.database.read(look_for_remains)
    assert remains is not None
    assert (remains.task_ids, remains.runs) == ([task.id], [(task.id, 1)])
    assert await band.database.read(lambda session: runs_of(session, [task.id])) == [(task.id, 1)]


async def test_which_tasks_have_ended(band: Orchestra) -> None:
    a, b = make("a"), make("b")
    a >> b
    await band.submit(a, b)
    await band.complete(*await band.claim())
    assert await band.database.read(lambda session: ended_among(session, [a.id, b.id, 5])) == {a.id}


@SERVERS
async def test_who_else_removes_is_not_waited_for(band: Orchestra) -> None:
    await some_job(band)
    await band.drain()
    await grow_old(band)
    await remove(band)
    remains = await band.database.read(look_for_remains)
    assert remains is not None
    async with band.transaction() as session:
        assert (await remove_remains(session, remains)).others
        assert await step(band) == 0
    while await step(band):
        pass
    assert await sizes(band) == [0, 0, 0, 0, 0]
