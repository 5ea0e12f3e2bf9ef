"""Clears where there is much: while endings are still being told, and in wide and deep graphs."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import delete, func, select, update

from aaiclick.orchestration.models import Group, Job, Task
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.moves import ripples
from aaiclick.orchestration.store.moves.clears import Cleared, clear_tasks
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import jobs, ready, tasks
from tests.support.band import band, member
from tests.support.clearing import chain, clear, finish
from tests.support.orchestra import Orchestra, done, failure, make

__all__ = ["band"]


# ---------------------------------------------------------------- ripples


async def told_half(band: Orchestra, monkeypatch: pytest.MonkeyPatch, *, fail: bool) -> tuple[Job, Task, list[Task]]:
    """A job in which the end of one task has been told to three of nine dependents."""
    monkeypatch.setattr(ripples, "STEP", 3)
    source, many = make("source"), [make(f"t{number}") for number in range(9)]
    source >> many
    job = await band.submit(source, *many, make("keeps open"))
    (claim, _) = await band.claim()
    report = failure(claim) if fail else done(claim)
    await band.database.transact(lambda session: take_reports(session, band.worker, [report], lambda: 1.0))
    assert await band.database.transact(ripples.work_one_ripple)
    assert await band.ripples() == [("doom" if fail else "release", source.id)]
    return job, source, many


@pytest.mark.parametrize("fail", [False, True], ids=["release", "doom"])
async def test_what_was_told_by_half_is_not_told_to_the_end(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, fail: bool
) -> None:
    _, source, many = await told_half(band, monkeypatch, fail=fail)
    assert len((await clear(band, source)).task_ids) == 10
    assert await band.ripples() == []
    assert await band.ready_names() == ["source"]
    await band.complete(*(await band.claim()))
    await band.coordinator.reconcile()
    assert len(await band.ready_names()) == len(many)
    assert await band.violations() == []


@pytest.mark.parametrize("which", [0, 8], ids=["told", "not told yet"])
@pytest.mark.parametrize("fail", [False, True], ids=["release", "doom"])
async def test_a_dependent_is_cleared_while_others_are_being_told(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, fail: bool, which: int
) -> None:
    job, _, many = await told_half(band, monkeypatch, fail=fail)
    await clear(band, many[which])
    await band.coordinator.reconcile()
    assert await band.violations() == []
    assert set((await band.statuses(job)).values()) == (
        {"failed", "upstream_failed", "claimed"} if fail else {"completed", "pending", "claimed"}
    )


@pytest.mark.parametrize("cancel", [False, True])
async def test_a_task_of_a_group_is_cleared_while_the_group_opens(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch, cancel: bool
) -> None:
    monkeypatch.setattr(ripples, "STEP", 3)
    first, group = make("first"), Group("g")
    inner = Group("inner", parent_group_id=group.id)
    deep = member(inner, "deep")
    members = [member(group, f"t{number}") for number in range(9)]
    first >> group
    job = await band.submit(first, group, inner, deep, *members)
    (claim,) = await band.claim()
    await band.database.transact(lambda session: take_reports(session, band.worker, [done(claim)], lambda: 1.0))
    for _ in range(2):
        for task in (members[0], members[8], deep):
            await clear(band, task)
        assert await band.database.transact(ripples.work_one_ripple)
    if cancel:
        assert await band.coordinator.cancel(job.id)
        assert await band.coordinator.clear(members[8].id) == [members[8].id]
        assert await band.violations(at_rest=False) == []
    await band.coordinator.reconcile()
    assert len(await band.ready_names()) == (1 if cancel else 10)
    await clear(band, first)
    assert await band.ready_names() == ["first"]
    assert len(await finish(band, job)) == 11


# ---------------------------------------------------------------- size


class Counting:
    """A session that notes how many rows its locks and writes touch."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.read = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    async def rows(self, *arguments: Any) -> Any:
        found = await self.session.rows(*arguments)
        self.read += len(found)
        return found


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_clearing_a_leaf_of_a_wide_job_looks_at_little_else(band: Orchestra) -> None:
    group = Group("g")
    everyone = [member(group, f"t{number}") for number in range(2_000)]
    everyone[0] >> everyone[1:]
    last = make("last")
    group >> last
    await band.submit(group, last, *everyone)
    seen: list[int] = []

    async def work(session: Session) -> Cleared:
        counting = Counting(session)
        cleared = await clear_tasks(counting, [everyone[7].id])  # type: ignore[arg-type]
        seen.append(counting.read)
        return cleared

    cleared = await band.database.transact(work)
    assert cleared.task_ids == [everyone[7].id, last.id]
    assert seen[0] < 40
    assert await band.violations() == []


async def test_a_chain_of_ten_thousand(band: Orchestra) -> None:
    nodes = chain(*(make(f"t{number}") for number in range(10_000)))
    job = await band.submit(*nodes)
    async with band.transaction() as session:  # as if all had run
        await session.run(update(tasks).values(status="completed", unmet_count=0))
        await session.run(update(jobs).values(status="completed", open_tasks=0, completed_tasks=10_000))
        await session.run(delete(ready))
    assert await band.coordinator.clear(nodes[0].id) == [node.id for node in nodes]
    assert await band.ready_names() == ["t0"]
    found = await band.job(job)
    assert (found.status, found.open_tasks, found.completed_tasks) == ("running", 10_000, 0)
    assert await band.scalar(select(func.count()).select_from(tasks).where(tasks.c.unmet_count == 1)) == 9_999


async def test_a_fan_out_that_is_wider_than_one_step(band: Orchestra) -> None:
    source, many = make("source"), [make(f"t{number}") for number in range(2_500)]
    source >> many
    job = await band.submit(source, *many)
    await band.drain(limit=2_500)
    assert len(await band.coordinator.clear(source.id)) == 2_501
    assert await band.ready_names() == ["source"]
    await band.drain(limit=2_500)
    assert (await band.job(job)).status == "completed"
    assert await band.violations() == []
