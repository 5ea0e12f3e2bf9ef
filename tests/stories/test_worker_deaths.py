"""kill -9 of workers, of their children and of the leader: everything runs again elsewhere, and counts once."""

from __future__ import annotations

import os
import signal

from sqlalchemy import select

from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store import tables
from tests.support.fleet import Fleet, all_gone, eventually, fleet, servers_only

__all__ = ["fleet"]

SESSION = {"AAICLICK_SESSION_SECONDS": "6"}  # of workers that are killed: how long the others wait
CALM = {"AAICLICK_SESSION_SECONDS": "30"}  # of workers that must keep theirs on a busy machine
AT_ONCE = RetryPolicy(delay_s=0.0)


async def test_what_a_killed_worker_ran_runs_elsewhere_and_counts_once(fleet: Fleet) -> None:
    fleet.env |= SESSION
    (doomed,) = await fleet.workers(1, concurrency=3)
    tasks = [fleet.errand("waits", f"wait{number}") for number in range(3)]
    job = await fleet.submit(*tasks)
    began = await fleet.noted("began", 3)
    (heir,) = await fleet.workers(1, concurrency=3, **CALM)
    family = doomed.family()
    assert {note.pid for note in began} <= {process.pid for process in family}
    doomed.kill()
    await all_gone(family)
    await fleet.noted("began", 6)
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    session = await fleet.session_of(heir)
    for row in (await fleet.tasks(job)).values():
        assert (row.lost_count, row.crash_count, row.attempt, row.worker_id) == (1, 0, 0, session)
    assert [await fleet.outcomes(task) for task in tasks] == [["lost", "completed"]] * 3


async def test_a_killed_inline_worker_is_mended_by_a_control_loop_of_its_own(fleet: Fleet) -> None:
    fleet.env |= SESSION
    fleet.start("background", "start", "-v")
    (doomed,) = await fleet.workers(1, "--executor", "inline", "--no-control", concurrency=3)
    job = await fleet.submit(*(fleet.errand(body) for body in ("waits", "waits_async", "spins")))
    await fleet.noted("began", 3)
    await fleet.workers(1, "--executor", "inline", "--no-control", concurrency=3, **CALM)
    doomed.kill()
    await fleet.noted("began", 6)
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    for row in (await fleet.tasks(job)).values():
        assert (row.lost_count, row.crash_count) == (1, 0)


async def test_a_child_that_is_killed_is_a_crash_of_its_task_alone(fleet: Fleet) -> None:
    (worker,) = await fleet.workers(1, concurrency=3, **CALM)
    bodies = [fleet.errand("waits", name, retry=AT_ONCE) for name in ("victim", "other")]
    job = await fleet.submit(*bodies, fleet.errand("dies", retry=AT_ONCE, critical=False))
    for round in (1, 2):
        began = await fleet.noted("began", round, "victim")
        os.kill(began[-1].pid, signal.SIGKILL)
    await fleet.noted("began", 3, "victim")
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    tasks = await fleet.tasks(job)
    assert (tasks["victim"].crash_count, tasks["victim"].lost_count, tasks["victim"].attempt) == (2, 0, 0)
    assert (tasks["other"].crash_count, tasks["other"].epoch) == (0, 1)
    assert (tasks["dies"].status, tasks["dies"].crash_count) == ("failed", 3)
    assert "SIGKILL" in tasks["dies"].error
    assert len(fleet.notes("began")) == 3 + 1 + 3
    assert worker.alive


@servers_only
async def test_another_leads_when_the_leader_is_killed(fleet: Fleet) -> None:
    fleet.env |= SESSION
    members = await fleet.workers(3, concurrency=3)
    await eventually(lambda: any(" leads (term" in member.said() for member in members))
    (leader,) = (member for member in members if " leads (term" in member.said())
    job = await fleet.submit(*(fleet.errand("waits", f"wait{number}") for number in range(4)))
    later = RetryPolicy(max_retries=1, delay_s=3.0, jitter=False)
    delayed = await fleet.submit(fleet.errand("fails", kwargs={"times": 1}, retry=later))
    began = await fleet.noted("began", 5)
    term = await fleet.scalar(select(tables.terms.c.term))
    family = [process.pid for process in leader.family()]
    lost = [note.name for note in began if note.pid in family and note.name != "fails"]
    leader.kill()
    await fleet.noted("began", 6 + len(lost))
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert (await fleet.end_of(delayed)).status == "completed"

    async def is_led_by_another() -> bool:  # perhaps after the jobs: what the leader did not run needs no leader
        return bool(await fleet.scalar(select(tables.terms.c.term)) > term)

    await eventually(is_led_by_another, fleet.explain)
    for name, row in (await fleet.tasks(job)).items():
        assert (row.lost_count, row.crash_count) == (int(name in lost), 0)
