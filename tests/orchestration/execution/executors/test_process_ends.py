"""How bodies in children are stopped, and what becomes of them when worker or nursery are gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.models import Claim
from tests.support import bodies, hostile
from tests.support.bodies import claim_of, failure_in, is_alive, pids_in, result_in, until, until_pid
from tests.support.executors import Settings, child_of, nursery_of, run

# ---------------------------------------------------------------- stopping


@pytest.mark.parametrize("body", [bodies.waits, bodies.asks])
async def test_a_child_that_ended_when_it_was_asked_is_used_again(
    executor: ProcessExecutor, change_settings: Settings, tmp_path: Path, body: Callable[..., object]
) -> None:
    change_settings(CANCEL_GRACE_SECONDS=100)
    pid = await child_of(executor)
    await stopped(executor, claim_of(body, path=str(tmp_path / "x")), tmp_path)
    assert (tmp_path / "x.stopped").exists()
    assert await child_of(executor) == pid


async def test_a_body_that_does_not_ask_gets_to_its_finally(executor: ProcessExecutor, tmp_path: Path) -> None:
    pid = await child_of(executor)
    await stopped(executor, claim_of(hostile.sleeps_with_finally, path=str(tmp_path / "x")), tmp_path)
    assert (tmp_path / "x.stopped").exists()
    assert await child_of(executor) != pid


async def test_a_body_that_ignores_everything_dies(executor: ProcessExecutor, tmp_path: Path) -> None:
    claim = claim_of(hostile.spins, path=str(tmp_path / "x"))
    pid = await stopped(executor, claim, tmp_path)
    assert not is_alive(pid)
    assert (tmp_path / "logs" / f"{claim.task_id}.log").read_text() == "[aaiclick] cancelled\n"
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1


async def test_a_body_that_ignores_everything_and_is_too_slow_dies(executor: ProcessExecutor, tmp_path: Path) -> None:
    await child_of(executor)  # the module is imported now
    failure = failure_in(await run(executor, claim_of(hostile.spins, timeout_s=0.5, path=str(tmp_path / "x"))))
    assert failure.error.startswith("TaskTimeout")
    assert not failure.crashed
    assert not is_alive(pids_in(tmp_path / "x.began")[0])


async def test_where_a_body_was_when_it_was_too_slow_is_told(executor: ProcessExecutor) -> None:
    await child_of(executor)  # the module is imported now
    failure = failure_in(await run(executor, claim_of(bodies.sleeps, timeout_s=0.5, seconds=60.0)))
    assert "in sleeps" in (failure.traceback or "")


@pytest.mark.parametrize("how", ["kill first", "kill meanwhile", "cancel again"])
async def test_who_has_no_patience_need_not_wait(
    executor: ProcessExecutor, change_settings: Settings, tmp_path: Path, how: str
) -> None:
    change_settings(CANCEL_GRACE_SECONDS=3600)
    task = asyncio.create_task(run(executor, claim_of(hostile.spins, path=str(tmp_path / "x"))))
    pid = await until_pid(tmp_path / "x.began")
    if how == "kill first":
        executor.kill()
    task.cancel()
    await asyncio.sleep(0.05)
    if how == "kill meanwhile":
        executor.kill()
    elif how == "cancel again":
        task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert not is_alive(pid)


async def test_a_signal_to_all_services_of_the_machine_stops_no_body(executor: ProcessExecutor, tmp_path: Path) -> None:
    task = asyncio.create_task(run(executor, claim_of(bodies.asks, path=str(tmp_path / "x"))))
    for pid in (nursery_of(executor), await until_pid(tmp_path / "x.began")):
        os.kill(pid, signal.SIGTERM)
    await asyncio.sleep(0.1)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert (tmp_path / "x.stopped").exists()


async def stopped(executor: ProcessExecutor, claim: Claim, tmp_path: Path) -> int:
    """Cancel a run once its body has begun; gives the process that it was in."""
    task = asyncio.create_task(run(executor, claim))
    pid = await until_pid(tmp_path / "x.began")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return pid


# ---------------------------------------------------------------- the end of a worker, or of a nursery


WORKER = """
import asyncio, sys
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from tests.support import bodies, hostile

async def main():
    executor = ProcessExecutor(2)
    await executor.start()
    claims = [bodies.claim_of(hostile.leaves_grandchildren_and_waits, path=sys.argv[1])]
    claims.append(bodies.claim_of(hostile.spins, path=sys.argv[2]))
    await asyncio.gather(*(executor.run(claim, lambda path: None) for claim in claims))

asyncio.run(main())
"""


async def test_whatever_becomes_of_a_worker_its_processes_die(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER, str(tmp_path / "pids"), str(tmp_path / "x")]
    surroundings = os.environ | {"PYTHONPATH": os.getcwd()}
    worker = await asyncio.create_subprocess_exec(*command, env=surroundings)  # its own parent, and no fork of another
    try:
        await until((tmp_path / "pids").exists)
        pids = [*pids_in(tmp_path / "pids"), await until_pid(tmp_path / "x.began")]
        assert all(is_alive(pid) for pid in pids)
        family = [process.pid for process in psutil.Process(worker.pid).children(recursive=True)]
        assert set(pids) < set(family)
    finally:
        worker.kill()
        await worker.wait()
    await until(lambda: not any(is_alive(pid) for pid in family))


async def test_a_nursery_that_dies_is_replaced(executor: ProcessExecutor, tmp_path: Path) -> None:
    task = asyncio.create_task(run(executor, claim_of(hostile.spins, path=str(tmp_path / "x"))))
    pid, nursery = await until_pid(tmp_path / "x.began"), nursery_of(executor)
    os.kill(nursery, signal.SIGKILL)
    failure = failure_in(await task)
    assert failure.crashed
    assert "had forked it died" in failure.error
    await until(lambda: not is_alive(pid))
    assert result_in(await run(executor, claim_of(bodies.echo, value=1))) == 1
    assert nursery_of(executor) != nursery


async def test_closing_leaves_no_process(tmp_path: Path) -> None:
    executor = ProcessExecutor(3)
    await executor.start()
    pids = [nursery_of(executor), *(child.pid for child in executor._idle)]
    assert len(pids) == 4
    await executor.close()
    assert not any(is_alive(pid) for pid in pids)
