"""Large values and kill -9, and the end of their jobs: no blob stays, and none goes that is needed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from aaiclick.config import reset_settings
from aaiclick.errors import ObjectNotFound
from aaiclick.orchestration import (
    ajob_test,
    get_job,
    get_job_result,
    get_task_result,
    get_tasks_for_job,
    job,
    retry_failed_tasks,
    run_job,
    task,
)
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.control import pruning
from aaiclick.orchestration.control.table_sweeper import TableSweeper
from aaiclick.orchestration.rules.values.run_tables import tables_named
from aaiclick.orchestration.store.tables import events, jobs, table_context_refs
from tests.support import heavy, warm
from tests.support.fleet import Fleet, eventually
from tests.support.front_door import local
from tests.support.orchestra import LONG_AGO
from tests.support.served import engine, fleet
from tests.support.shelf import references, tables, tidy

__all__ = ["engine", "fleet", "local"]

N = 1_000
"""So many numbers are more than the limit."""

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_VALUE_BYTES_MAX", "2000")
    reset_settings()


# ---------------------------------------------------------------- kill -9


@pytest.mark.timeout(120)
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("executor", "deaths"), [("process", ["made", "written"]), ("inline", ["reported"])])
async def test_a_process_is_killed_between_the_blob_and_its_report(
    fleet: Fleet, engine: None, executor: str, deaths: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a child it is a crash; inline it is the worker, whose claim is taken up when its session is over."""
    monkeypatch.setenv("AAICLICK_SQL_URL", fleet.env["AAICLICK_SQL_URL"])
    fleet.env["AAICLICK_VALUE_BYTES_MAX"] = "2000"
    reset_settings()
    made = await heavy.sums.submit(N, deaths, str(tmp_path))
    (first,) = await fleet.workers(1, "--executor", executor)
    if executor == "inline":
        await first.ended()
        await fleet.workers(1, "--executor", executor)
    ended = await fleet.end_of(made)
    assert ended.status == "completed", ended.error
    assert {*deaths} <= {*os.listdir(tmp_path)}
    assert await get_job_result(made.id) == {"sums": [sum(range(N))] * len(deaths), "last": list(range(N))}

    async def only_the_result_is_left() -> bool:
        last = next(each for each in reversed(await get_tasks_for_job(made.id)) if each.name == "heavy")
        return await tables() == sorted(tables_named(last.result_json))

    await eventually(only_the_result_is_left, fleet.explain, seconds=60)


SUBMITS = """
import asyncio, os, signal
from aaiclick.orchestration import run_job
from aaiclick.orchestration.coordinator.direct import DirectCoordinator


async def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


DirectCoordinator.submit = die
asyncio.run(run_job("large", "tests.support.heavy.summed", {"values": list(range(1000))}))
"""


async def test_a_program_is_killed_between_the_blob_and_its_job(local: Path) -> None:
    kept = await run_job("kept", heavy.summed, {"values": list(range(N))})
    killed = await warm.create_subprocess_exec(sys.executable, "-c", SUBMITS, cwd=ROOT)
    assert await killed.wait() == -9
    assert len(await tables()) == 2
    await go_over()
    assert len(await tables()) == 2  # it may be on its way
    await go_over(later=True)
    assert len(await tables()) == 1
    assert await get_job_result((await ajob_test(kept)).id) == sum(range(N))
    await tidy()
    assert (await tables(), await references()) == ([], 0)


# ---------------------------------------------------------------- retention


@task
def large(n: int) -> list[int]:
    return list(range(n))


@task
def fails_until(values: list[int], mark: str) -> list[int]:
    if not Path(mark).exists():
        raise RuntimeError("not yet")
    return values


@job
def all_kinds(n: int, mark: str) -> Any:
    """A blob that is returned, one that is given, one that is handed on, and one that the workflow returns itself."""
    return {"itself": list(range(n)), "returned": fails_until(large(n), mark), "given": fails_until([0] * n, mark)}


async def go_over(*, later: bool = False) -> None:
    """What whoever leads does about tables; or would do later, when they all have been known for long."""
    async with connected() as database:
        if later:
            old = update(table_context_refs).values(created_at=LONG_AGO)
            await database.transact(lambda session: session.run(old))
        sweeper = TableSweeper(database)
        await sweeper.expire()
        await sweeper.sweep()
    await tidy()


async def grow_old(job_id: int) -> None:
    """This job ended long ago, and all is counted."""
    async with connected() as database:
        ended = update(jobs).where(jobs.c.id == job_id).values(completed_at=LONG_AGO, created_at=LONG_AGO)
        for change in (ended, update(events).values(at=LONG_AGO)):
            await database.transact(lambda session, change=change: session.run(change))  # type: ignore[misc]


async def prune() -> None:
    async with connected() as database:
        await pruning.prune(database, None)


async def test_what_a_retry_needs_stays_and_all_goes_with_the_job(local: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    made, young = [await ajob_test(all_kinds, N, str(mark)) for _ in range(2)]
    assert (made.status, young.status) == ("failed", "failed")
    await go_over(later=True)
    assert len(await tables()) == 6  # what failed keeps its inputs, and the job its own
    mark.touch()
    for each in (made, young):
        await retry_failed_tasks(each.id)
        await go_over(later=True)
        again = await ajob_test(each)
        assert again.status == "completed", again.error
    await go_over(later=True)
    expected = {"itself": list(range(N)), "returned": list(range(N)), "given": [0] * N}
    assert [await get_job_result(each.id) for each in (made, young)] == [expected] * 2
    assert len(await tables()) == 6
    await grow_old(made.id)
    await prune()
    assert await get_job(made.id) is None
    assert len(await tables()) == 3
    assert await get_job_result(young.id) == expected
    await grow_old(young.id)
    await prune()
    assert (await tables(), await references()) == ([], 0)


async def test_blobs_go_before_their_job_and_that_is_told(local: Path, tmp_path: Path) -> None:
    (tmp_path / "mark").touch()
    ended = await ajob_test(all_kinds, N, str(tmp_path / "mark"))
    await grow_old(ended.id)
    await go_over()
    assert (await tables(), await references()) == ([], 0)
    assert json.loads((await get_tasks_for_job(ended.id))[0].result_json or "")["object_type"] == "blob"
    with pytest.raises(ObjectNotFound, match="AAICLICK_JOB_TTL"):
        await get_job_result(ended.id)
    with pytest.raises(ObjectNotFound, match="AAICLICK_JOB_TTL"):
        await get_task_result((await get_tasks_for_job(ended.id))[0].id)
