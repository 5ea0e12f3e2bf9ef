"""`aaiclick local start` on real processes: any part may be killed, and all end as one."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.data.embedded.directory_lock import owner_pid
from aaiclick.data.gateway import serve_directory
from aaiclick.orchestration import ajob_test, get_job, get_job_result, list_workers
from aaiclick.orchestration.models import Job
from tests.support.fleet import Fleet, all_gone, eventually, fleet
from tests.support.harvest import expected, harvest
from tests.support.local_fleet import LocalFleet, Place, machine

__all__ = ["fleet", "machine"]

FIELDS = 4
KILLED = ("engine", "control", "server", "worker 1")


async def result_of(job: Job, running: LocalFleet | None = None) -> object:
    """The job's result, as soon as it has completed."""

    async def ended() -> bool:
        found = await get_job(job.id)
        assert found is not None
        assert found.status in ("pending", "running", "completed"), found.error
        return found.status == "completed"

    await eventually(ended, running.explain if running else str)
    return await get_job_result(job.id)


async def test_one_workflow_gives_the_same_in_job_test_and_in_a_local_fleet(machine: Place) -> None:
    ended = await ajob_test(await harvest.submit(fields=FIELDS))
    assert await get_job_result(ended.id) == expected(FIELDS)

    running = await machine.start("--workers", "2", "--concurrency", "2").up()
    assert await result_of(await harvest.submit(fields=FIELDS), running) == expected(FIELDS)
    live = [worker.name for worker in await list_workers("active")]
    assert sorted(map(str, live)) == ["local-1", "local-2"]
    await a_second_ctrl_c_stops_now_and_gives_back_what_runs(machine, running)
    assert await list_workers("active") == []


async def a_second_ctrl_c_stops_now_and_gives_back_what_runs(machine: Place, running: LocalFleet) -> None:
    job = await harvest.submit(fields=FIELDS, place=str(machine.place))
    await machine.began(FIELDS)
    running.family()
    os.killpg(running.process.pid, signal.SIGINT)  # as the terminal does: to the whole group
    await running.until("stopping")
    os.killpg(running.process.pid, signal.SIGINT)
    assert await running.ended() == 0, running.explain()
    ended = {told["part"]: told["code"] for told in running.named("ended")}
    assert len(ended) == 5
    assert set(ended.values()) <= {0, -signal.SIGTERM}, running.explain()  # asked each second, to the very end
    found = await get_job(job.id)
    assert found is not None
    assert (found.status, found.completed_tasks, found.failed_tasks) == ("running", 0, 0)


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_the_same_workflow_on_servers(
    fleet: Fleet, migrated_sql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ClickHouse server cannot be had here: the gateway speaks its protocol."""
    serving = await asyncio.to_thread(serve_directory, tmp_path / "served", port=0)
    assert serving is not None
    where = serving.endpoint
    address = f"clickhouse://{where.user}:{where.password}@{where.tcp.removeprefix('http://')}/default"
    try:
        for name, value in {"AAICLICK_SQL_URL": migrated_sql_url, "AAICLICK_CH_URL": address}.items():
            monkeypatch.setenv(name, value)
            fleet.env[name] = value
        reset_settings()
        await fleet.workers(2)
        assert await result_of(await harvest.submit(fields=FIELDS)) == expected(FIELDS)
    finally:
        fleet.end()
        await asyncio.to_thread(serving.close)
        reset_settings()


async def test_any_part_may_be_killed_and_the_work_goes_on(machine: Place) -> None:
    running = await machine.start("--workers", "2", "--concurrency", "2").up()
    job = await harvest.submit(fields=FIELDS, place=str(machine.place))
    await machine.began(FIELDS)
    bodies = running.family()
    for part in KILLED:
        os.kill(running.pid_of(part), signal.SIGKILL)
    for part in KILLED:
        await running.until("started", part, count=2)
    await machine.began(FIELDS + 2)
    machine.go()
    assert await result_of(job, running) == expected(FIELDS)
    died = {told["part"]: told["cause"] for told in running.named("died")}
    assert died == dict.fromkeys(KILLED, "was killed by SIGKILL")
    assert owner_pid(machine.home / "root" / "chdb_data") == running.pid_of("engine")
    assert len(running.named("started", "worker 2")) == 1
    running.family()
    running.process.send_signal(signal.SIGHUP)
    assert await running.ended() == 0, running.explain()
    await all_gone(bodies)


async def test_when_the_fleet_itself_is_killed_all_parts_end_and_the_next_start_goes_on(machine: Place) -> None:
    running = await machine.start("--workers", "1", "--concurrency", "2").up()
    job = await harvest.submit(fields=2, place=str(machine.place))
    await machine.began(2)
    running.family()
    assert {running.pid_of(part) for part in KILLED} < running.seen
    running.process.kill()
    assert await running.ended() == -signal.SIGKILL
    await eventually(lambda: owner_pid(machine.home / "root" / "chdb_data") is None)  # whoever inherited it ends too

    again = await machine.start("--workers", "1", "--concurrency", "2").up()
    await machine.began(4)
    await ctrl_c_ends_it_in_order_and_what_runs_finishes(machine, again)
    found = await get_job(job.id)
    assert found is not None
    assert (found.status, found.completed_tasks >= 2) == ("running", True)


async def ctrl_c_ends_it_in_order_and_what_runs_finishes(machine: Place, running: LocalFleet) -> None:
    running.family()
    os.killpg(running.process.pid, signal.SIGINT)
    await running.until("stopping")
    machine.go()
    assert await running.ended() == 0, running.explain()
    ended = running.named("ended")
    assert {told["code"] for told in ended} == {0}
    first, *between, last = [told["part"] for told in ended]
    assert (first, sorted(between), last) == ("worker 1", ["control", "server"], "engine")
