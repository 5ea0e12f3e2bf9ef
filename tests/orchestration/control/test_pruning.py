"""What was kept long enough goes, by itself or when asked for; what there is stays bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, update

from aaiclick.config import reset_settings
from aaiclick.orchestration.control import pruning
from aaiclick.orchestration.control.control_loop import Control
from aaiclick.orchestration.control.pruning import KINDS, Pruner
from aaiclick.orchestration.control.reconcilers import SWEEP_EVERY_S
from aaiclick.orchestration.control.repairs import count_events
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.log_stores.directory import LocalDirectory
from aaiclick.orchestration.models import Claim, Job, WorkerStatus
from aaiclick.orchestration.rules.metrics import JOB_COUNTERS, JOB_S, METRICS
from aaiclick.orchestration.store.definitions.access_tables import audit
from aaiclick.orchestration.store.definitions.common_columns import metadata
from aaiclick.orchestration.store.reading import metrics
from aaiclick.orchestration.store.retention import event_ages
from aaiclick.orchestration.store.tables import events, gone_jobs, jobs, runs, tasks, workers
from tests.orchestration.store.retention.test_job_ages import change, grow_old
from tests.support.band import band
from tests.support.clocks import HandClock
from tests.support.orchestra import LONG_AGO, Orchestra, done, make

__all__ = ["band"]

LONG = "TEST_LONG" in os.environ


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "logs"
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(place))
    reset_settings()
    return place


def logged(claim: Claim) -> object:
    log = RunLog(claim.task_id, claim.epoch)
    log.note("hello")
    log.close()
    return done(claim)


async def run_one(band: Orchestra, name: str = "job") -> Job:
    a, b = make("a"), make("b")
    a >> b
    job = await band.submit(a, b, name=name)
    await band.drain(logged)  # type: ignore[arg-type]
    return job


async def sizes(band: Orchestra) -> dict[str, int]:
    """How many rows there are of everything."""
    counted = {name: select(func.count()).select_from(table) for name, table in metadata.tables.items()}
    return {name: await band.scalar(question) for name, question in counted.items()}


async def test_all_that_is_a_jobs_goes_and_the_numbers_stay(band: Orchestra, logs: Path) -> None:
    await run_one(band)
    young = await band.submit(make("a"))
    await grow_old(band)
    before = await band.database.read(metrics.read_metrics)
    assert len(os.listdir(logs)) == 4
    asked = await pruning.look(band.database, LocalDirectory(logs))
    assert len(os.listdir(logs)) == 4
    told: list[int] = []
    gone = await pruning.prune(band.database, LocalDirectory(logs), lambda counts: told.append(counts.total()))
    assert {kind: gone[kind] for kind in KINDS} == {kind: asked[kind] for kind in KINDS}
    assert gone == {"jobs": 1, "tasks": 2, "runs": 2, "logs": 4, "events": gone["events"]}
    assert told == sorted(told)
    assert os.listdir(logs) == []
    assert [row.id for row in await band.rows(select(jobs.c.id))] == [young.id]
    assert await band.rows(select(gone_jobs.c.job_id)) == []
    after = await band.database.read(metrics.read_metrics)
    assert (after.counters, after.histograms) == (before.counters, before.histograms)
    assert not any((await pruning.prune(band.database, LocalDirectory(logs))).values())
    await band.drain()
    assert await band.violations() == []


async def test_a_crash_between_is_taken_up_by_the_next(
    band: Orchestra, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run_one(band)
    await grow_old(band)

    def dies(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as crash:
        crash.setattr(LocalDirectory, "remove_runs", dies)
        with pytest.raises(KeyboardInterrupt):
            await Pruner(LocalDirectory(logs)).prune_jobs(band.database)
    assert len(await band.rows(select(gone_jobs.c.job_id))) == 1
    counts = await pruning.prune(band.database, LocalDirectory(logs))
    assert (counts["tasks"], counts["logs"]) == (2, 4)
    assert os.listdir(logs) == []


async def test_logs_that_cannot_be_removed_keep_no_row(
    band: Orchestra, logs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await run_one(band)
    await grow_old(band)
    (name, *_) = sorted(os.listdir(logs))
    (logs / name).unlink()
    (logs / name).mkdir()  # what nobody can unlink, root neither
    await pruning.prune(band.database, LocalDirectory(logs))
    assert os.listdir(logs) == [name]
    assert await band.rows(select(tasks.c.id)) == []
    assert caplog.text.count("removing logs fails") == 1


async def test_old_logs_go_before_their_jobs_and_those_of_others_stay(band: Orchestra, logs: Path) -> None:
    await run_one(band)
    await band.submit(make("c"))
    (claim,) = await band.claim()
    logged(claim)
    (logs / "123.log").write_text("of another installation")
    for name in os.listdir(logs):
        os.utime(logs / name, (1000, 1000))
    assert (await pruning.look(band.database, LocalDirectory(logs)))["logs"] == 4
    assert await Pruner(LocalDirectory(logs)).prune_logs(band.database) == {"logs": 4}
    assert sorted(os.listdir(logs)) == sorted(["123.log", f"{claim.task_id}.log", f"{claim.task_id}.1.log"])
    assert len(await band.rows(select(jobs.c.id))) == 2


async def test_every_control_looks_after_the_logs_of_its_machine(band: Orchestra, logs: Path) -> None:
    """The leader may be on another machine."""
    await run_one(band)
    for name in os.listdir(logs):
        os.utime(logs / name, (1000, 1000))
    clock = HandClock()
    leader = Control(band.database, 1, session_s=30, clock=clock)
    follower = Control(band.database, 2, session_s=30, clock=clock, logs=LocalDirectory(logs))
    await leader.round()
    await follower.round()
    assert len(os.listdir(logs)) == 4
    clock.now += SWEEP_EVERY_S
    await leader.round()
    await follower.round()
    assert not follower.leader.leads
    assert os.listdir(logs) == []


async def test_runs_of_tasks_that_a_clear_removed_go_with_the_word_of_it(band: Orchestra, logs: Path) -> None:
    job = await run_one(band)
    (logs / "5.2.log").write_text("x")
    run = {"task_id": 5, "epoch": 2, "attempt": 1, "ended_at": LONG_AGO, "outcome": "cleared"}
    event = {"job_id": job.id, "task_id": 5, "epoch": 2, "move": "remove", "status": "completed", "at": LONG_AGO}
    await change(band, insert(runs).values(run), insert(events).values(event))
    await band.submit(make("b"))
    await change(band, update(events).values(at=LONG_AGO))
    await count_events(band.database)
    assert (await Pruner(LocalDirectory(logs)).prune_events(band.database))["runs"] == 1
    assert await band.rows(select(runs).where(runs.c.task_id == 5)) == []
    assert not (logs / "5.2.log").exists()
    assert len(await band.rows(select(runs))) == 2


async def test_old_events_go_in_bounded_steps(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c", "d"):
        await band.submit(make(name))
    assert await Pruner().prune_events(band.database) == {}
    await change(band, update(events).values(at=LONG_AGO))
    await count_events(band.database)
    monkeypatch.setattr(event_ages, "STEP", 1)
    monkeypatch.setattr(pruning, "STEPS_MAX", 2)
    found = [await Pruner().prune_events(band.database) for _ in range(3)]
    assert found == [{"events": 2}, {"events": 1}, {}]  # the newest stays


async def test_what_is_set_to_zero_is_kept_for_ever(
    band: Orchestra, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HISTORY", "LOG", "FIRE", "WORKER", "AUDIT"):
        monkeypatch.setenv(f"AAICLICK_{name}_TTL", "0")
    reset_settings()
    await run_one(band)
    await grow_old(band)
    row = {"id": 1, "at": LONG_AGO, "actor": "a", "verb": "v", "target": "t"}
    stopped = {"last_heartbeat": LONG_AGO, "expires_at": LONG_AGO, "status": WorkerStatus.STOPPED}
    await change(band, insert(audit).values(row), update(workers).values(stopped))
    for name in os.listdir(logs):
        os.utime(logs / name, (1000, 1000))
    asked = await pruning.look(band.database, LocalDirectory(logs))
    gone = await pruning.prune(band.database, LocalDirectory(logs))
    assert {kind for kind in KINDS if asked[kind] or gone[kind]} == {"events"}


@pytest.mark.timeout(600 if LONG else 120)
async def test_what_there_is_stays_bounded(band: Orchestra, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A soak: rounds of short jobs, workers that come and go, and whoever leads. TEST_LONG=1: thousands of them."""
    rounds, each = (100, 30) if LONG else (4, 5)
    monkeypatch.setenv("AAICLICK_HISTORY_TTL", "3600")
    monkeypatch.setenv("AAICLICK_WORKER_TTL", "3600")
    monkeypatch.setenv("AAICLICK_EVENT_TTL", "3600")
    reset_settings()
    seen: list[tuple[dict[str, int], int]] = []
    pruner, made = Pruner(LocalDirectory(logs)), 0
    for _ in range(rounds):
        assert (await band.coordinator.beat(band.worker)).alive
        for number in range(each):
            await run_one(band, f"job {number}")
            made += 1
        passing = await band.coordinator.register(hostname="there", pid=2)
        stopped = {"last_heartbeat": LONG_AGO, "expires_at": LONG_AGO, "status": WorkerStatus.STOPPED}
        await change(band, update(workers).where(workers.c.id == passing.id).values(stopped))
        await grow_old(band)
        for work in pruner.works:
            while await work(band.database):
                pass
        seen.append((await sizes(band), len(os.listdir(logs))))
    tallies = {"metrics", "job_metrics"}  # a row for each step of seconds that a job ever took: these have an end
    flat = [{name: size for name, size in found.items() if name not in tallies} for found, _ in seen]
    assert flat[1:] == [flat[1]] * (rounds - 1)
    assert max(found["job_metrics"] for found, _ in seen) <= each * (
        len(JOB_COUNTERS) + len(METRICS[JOB_S].buckets_s) + 1
    )
    assert {count for _, count in seen} == {0}
    counted = (await band.database.read(metrics.read_metrics)).counters
    assert (counted["jobs_created_total"], counted["jobs_completed_total"]) == (made, made)
    assert await band.violations() == []
