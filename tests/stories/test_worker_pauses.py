"""A worker that is stopped past its session: what it held runs elsewhere, and what it says then counts nowhere."""

from __future__ import annotations

import asyncio
import signal

import pytest
from sqlalchemy import select

from aaiclick.orchestration.control.repairs import end_dead_sessions, recover_lost_runs
from aaiclick.orchestration.store import tables
from tests.support.fleet import LONG, Fleet, Member, all_gone, eventually, fleet, servers_only

__all__ = ["fleet"]


@pytest.mark.parametrize("executor", ["process", "inline"] if LONG else ["process"])
async def test_a_paused_worker_comes_back_with_a_new_session(fleet: Fleet, executor: str) -> None:
    fleet.env["AAICLICK_SESSION_SECONDS"] = "6"
    options = ("--executor", executor)
    (paused,) = await fleet.workers(1, *options, concurrency=3)
    before = await fleet.session_of(paused)
    bodies = ("waits", "waits_async", "spins") if executor == "process" else ("waits_async",)
    tasks = [fleet.errand(body) for body in bodies]
    job = await fleet.submit(*tasks)
    began = await fleet.noted("began", len(tasks))
    (heir,) = await fleet.workers(1, *options, concurrency=3, AAICLICK_SESSION_SECONDS="30")
    async with fleet.transaction():  # it holds no lock then: on SQLite nobody else could write for as long as it sleeps
        paused.signal(signal.SIGSTOP)
    again = (await fleet.noted("began", 2 * len(tasks)))[len(tasks) :]
    if executor == "process":
        await all_gone(note.pid for note in began)  # though their worker sleeps
    paused.signal(signal.SIGCONT)
    await eventually(lambda: _is_anew(fleet, paused, before), fleet.explain)
    if executor == "inline":
        await fleet.noted("cancelled", 1, "waits_async")
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert await fleet.results(job) == {note.name: note.pid for note in again}
    for row in (await fleet.tasks(job)).values():
        assert (row.lost_count, row.crash_count, row.worker_id) == (1, 0, await fleet.session_of(heir))
    assert [await fleet.outcomes(task) for task in tasks] == [["lost", "completed"]] * len(tasks)

    heir.signal(signal.SIGTERM)
    await heir.ended()
    assert (await fleet.end_of(await fleet.submit(*fleet.quick(3)))).status == "completed"


async def _is_anew(fleet: Fleet, member: Member, before: int) -> bool:
    sessions = await fleet.sessions(member)
    return sessions[-1].id != before and sessions[-1].status == "active"


@servers_only
async def test_what_a_paused_transaction_holds_does_not_hold_up_the_rest(fleet: Fleet) -> None:
    held, free = fleet.quick(2)
    await fleet.submit(held, free)
    worker = await fleet.coordinator.register(hostname="here", pid=1)
    assert len(await fleet.coordinator.claim(worker.id, limit=2)) == 2
    await fleet.coordinator.deregister(worker.id)
    async with fleet.transaction() as paused, asyncio.timeout(60):
        await paused.run(select(tables.tasks.c.id).where(tables.tasks.c.id == held.id).with_for_update())
        await end_dead_sessions(fleet.database)
        assert await recover_lost_runs(fleet.database) == 1
        assert await fleet.outcomes(free) == ["lost"]
    await end_dead_sessions(fleet.database)
    assert await recover_lost_runs(fleet.database) == 1
    assert await fleet.violations() == []
