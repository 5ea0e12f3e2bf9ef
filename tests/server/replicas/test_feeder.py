"""A replica has what its coordinator has, whatever is written while it copies, and wherever it is cut off."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, insert, update

from aaiclick.errors import CoordinatorUnreachable
from aaiclick.orchestration.models import Group, Job
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.replicas.replicated import REPLICATED
from aaiclick.orchestration.store.retention.job_ages import remove_jobs
from aaiclick.orchestration.store.retention.job_remains import look_for_remains, remove_remains
from aaiclick.orchestration.store.tables import events, jobs, registered_jobs, tasks
from tests.support.band import band, filled, member
from tests.support.growing import grown
from tests.support.orchestra import LONG_AGO, Orchestra, failing, make
from tests.support.replicas import MOVING, Fed, contents, differences, fed, replica, some_jobs, write

__all__ = ["band", "replica"]


# ---------------------------------------------------------------- the first copy


async def test_the_first_copy_has_everything(band: Orchestra, replica: Fed) -> None:
    await some_jobs(band)
    await replica.compare_all()
    assert await differences(band, replica) == []
    assert replica.progress.is_whole
    assert replica.progress.as_of_seq == max(key for (key,) in await contents(band.database, "events"))


async def test_what_changes_between_the_pages_of_a_copy_is_taken_over_by_its_events(
    band: Orchestra, replica: Fed
) -> None:
    await some_jobs(band)
    turns = iter(range(100))

    async def disturb(asked: Any) -> None:
        """Between two tables a job is added, and another one goes on."""
        if next(turns) < 8:
            await band.submit(make("x") >> make("y"), name="meanwhile")
            await band.complete(*await band.claim(2))

    replica.wire.after["replica_page"] = disturb
    await replica.compare_all()
    del replica.wire.after["replica_page"]
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []


async def test_a_copy_that_was_cut_off_goes_on_where_it_was(band: Orchestra, replica: Fed, tmp_path: Path) -> None:
    await some_jobs(band)

    async def cut(asked: Any) -> None:
        if asked.table == "runs":
            raise CoordinatorUnreachable(url="", cause="cut")

    replica.wire.before["replica_page"] = cut
    with pytest.raises(CoordinatorUnreachable):
        await replica.compare_all()
    assert not replica.progress.is_whole
    assert replica.progress.state.looking == "runs"
    await band.submit(make("late"))
    await replica.database.close()
    async with fed(band, tmp_path / "replica.db") as again:
        seen: list[str] = []
        again.wire.before["replica_page"] = lambda asked: _noted(seen, asked.table)
        await again.catch_up()
        copied = seen[: seen.index("workers") + 1]
        assert "tasks" not in copied
        assert "runs" in copied
        assert await differences(band, again, *MOVING) == []


async def _noted(seen: list[str], name: str) -> None:
    seen.append(name)


async def test_a_job_that_goes_during_the_copy_vanishes_from_it(band: Orchestra, replica: Fed) -> None:
    gone, stays = await band.submit(make("a") >> make("b"), name="gone"), await band.submit(make("c"), name="stays")
    await band.drain()
    await grow_old(band, gone)

    async def remove(asked: Any) -> None:
        if asked.table == "events":
            await forget(band)

    replica.wire.before["replica_page"] = remove
    await replica.compare_all()
    assert {key for (key,) in await contents(replica.database, "jobs")} == {gone.id, stays.id}
    del replica.wire.before["replica_page"]
    await replica.compare_the_rest()
    assert await differences(band, replica) == []
    assert {key for (key,) in await contents(replica.database, "jobs")} == {stays.id}


async def grow_old(band: Orchestra, job: Job) -> None:
    old = {"completed_at": LONG_AGO, "created_at": LONG_AGO}
    await write(band, update(jobs).where(jobs.c.id == job.id).values(old), update(events).values(at=LONG_AGO))
    while await band.database.transact(metrics.count_settled):
        pass


async def forget(band: Orchestra) -> None:
    """Remove the jobs that are old, with all that they leave."""
    assert await band.database.transact(partial(remove_jobs, ttl_s=86_400))
    while (remains := await band.database.read(look_for_remains)) is not None:
        await band.database.transact(partial(remove_remains, remains=remains))


# ---------------------------------------------------------------- following


async def test_changes_are_taken_over_without_another_copy(band: Orchestra, replica: Fed) -> None:
    await some_jobs(band)
    await replica.compare_all()
    pages = replica.progress.counts.pages
    await band.drain(failing("f"))
    await band.submit(make("more"), filled("h"), name="new")
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []
    assert (replica.progress.counts.copies, replica.progress.counts.pages) == (1, pages)


async def test_a_graph_that_is_too_large_for_one_answer_comes_in_pages(
    band: Orchestra, replica: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aaiclick.orchestration.store.replicas.source.SMALL_TASKS", 3)
    await replica.compare_all()
    group = Group("g")
    first = make("first")
    first >> group
    await band.submit(first, group, *(member(group, f"t{number}") for number in range(10)))
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []


async def test_a_job_that_grows_brings_its_new_tasks(band: Orchestra, replica: Fed) -> None:
    job = await band.submit(make("maker"), name="grows")
    await replica.compare_all()
    (claim,) = await band.claim()
    await band.report(grown(claim, *(make(f"child {number}") for number in range(3))))
    await band.apply(job, make("applied"))
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []


async def test_tasks_that_are_older_than_their_event_says_are_found_by_their_number(
    band: Orchestra, replica: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await band.submit(make("a"), name="grows")
    await replica.compare_all()
    added = make("slow")
    await band.apply(job, added)
    await write(band, update(tasks).where(tasks.c.id == added.id).values(created_at=LONG_AGO))
    await replica.catch_up()
    assert await differences(band, replica, *MOVING) == []


async def test_children_of_a_run_that_is_cleared_vanish(band: Orchestra, replica: Fed) -> None:
    await band.submit(make("maker"), name="grows")
    (claim,) = await band.claim()
    await band.report(grown(claim, make("child") >> make("grandchild")))
    await replica.catch_up()
    assert len(await contents(replica.database, "tasks")) == 3
    await band.coordinator.clear(claim.task_id)
    await replica.catch_up()
    assert await differences(band, replica, *MOVING, "dependencies") == []
    assert len(await contents(replica.database, "tasks")) == 1


async def test_what_no_event_tells_of_is_found_by_looking(band: Orchestra, replica: Fed) -> None:
    (job, *_) = await some_jobs(band)
    await replica.compare_all()
    row = {"id": 5, "name": "r", "entrypoint": "m.f", "default_kwargs": "{}", "created_at": LONG_AGO}
    await write(
        band,
        update(tasks).where(tasks.c.job_id == job.id).values(priority=7, run_after=LONG_AGO),
        update(jobs).where(jobs.c.id == job.id).values(priority=7),
        insert(registered_jobs).values(updated_at=LONG_AGO, **row),
    )
    await band.coordinator.beat(band.worker, completed=3)
    await replica.catch_up()
    changed = {line.split()[0] for line in await differences(band, replica)}
    assert changed == {"jobs", "tasks", "registered_jobs", "workers"}
    await replica.look()
    assert {line.split()[0] for line in await differences(band, replica)} == {"jobs", "tasks"}
    await replica.compare_the_rest()
    assert await differences(band, replica) == []


async def test_a_sweep_of_what_is_the_same_brings_no_rows(band: Orchestra, replica: Fed) -> None:
    await some_jobs(band)
    await replica.catch_up()
    rows = replica.progress.counts.rows
    await replica.sweep()
    assert replica.progress.counts.rows == rows
    assert replica.progress.counts.same_pages >= 4


async def test_workers_that_stop_and_go_are_followed(band: Orchestra, replica: Fed) -> None:
    await replica.compare_all()
    assert await differences(band, replica, "workers") == []
    await band.coordinator.deregister(band.worker)
    await replica.look()
    assert await differences(band, replica, "workers") == []
    workers = REPLICATED["workers"]
    await write(band, delete(workers))
    await replica.compare_the_rest()
    assert await contents(replica.database, "workers") == {}
