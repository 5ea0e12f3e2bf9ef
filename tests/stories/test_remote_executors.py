"""Commands, calls and remembered results on workers without a database: what they need, what they ask their server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from aaiclick import rest, shell
from aaiclick.orchestration import as_task
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.store import tables
from tests.orchestration import cached_flows as flows
from tests.support.fleet import Fleet, eventually, fleet
from tests.support.remote import Remote, remote_fleet
from tests.support.web import Web, serving

__all__ = ["fleet"]


@pytest.fixture
async def remote(fleet: Fleet) -> Remote:
    return await remote_fleet(fleet)


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as server:
        yield server


async def test_a_command_goes_to_a_worker_that_offers_its_executor(remote: Remote) -> None:
    """The worker that asks the server offers none; a worker of another node, with the database, does."""
    fleet = remote.fleet
    (plain,) = await remote.workers(1, AAICLICK_EXECUTORS="python")
    command, body = shell("echo done", name="command"), fleet.quick(1)[0]
    job = await fleet.submit(command, body)

    async def is_ready(name: str, *statuses: str) -> bool:
        return (await fleet.tasks(job))[name].status in statuses

    await eventually(lambda: is_ready(body.name, "completed"), fleet.explain)
    assert await is_ready("command", "pending", "ready"), "the worker said that it has no such executor"
    (other,) = await fleet.workers(1, "--node-name", "elsewhere")
    assert (await fleet.end_of(job)).status == "completed"
    assert (await fleet.results(job))["command"] == "done"
    workers = {row.id: row.pid for row in await fleet.rows(select(tables.workers))}
    ran = {name: workers[row.worker_id] for name, row in (await fleet.tasks(job)).items()}
    assert ran == {"command": other.pid, body.name: plain.pid}


async def test_a_command_and_a_callback_are_done_by_a_worker_without_a_database(remote: Remote, web: Web) -> None:
    fleet = remote.fleet
    web.answers["/jobs"] = [(202, {}, "")]
    await remote.workers(1, AAICLICK_SERVER_URL=remote.url)
    waits = rest("POST", f"{web.url}/jobs", json={"tell": "{callback_url}"}, callback=True, name="waits")
    job = await fleet.submit(shell("echo $((6 * 7))", name="command"), waits)
    await eventually(lambda: bool(web.asked), fleet.explain)
    address = json.loads(web.asked[0].body)["tell"]
    assert address.startswith(f"{remote.url}/api/v1/callbacks/")
    async with httpx.AsyncClient(timeout=60) as client:
        answers = [(await client.post(address, json={"rows": 3})).json() for _ in range(2)]
    assert [answer["repeated"] for answer in answers] == [False, True]
    assert (await fleet.end_of(job)).status == "completed"
    assert await fleet.results(job) == {"command": "42", "waits": {"rows": 3}}


@pytest.mark.parametrize("executor", ["process", "inline"])
async def test_remembered_results_are_told_by_the_server_whatever_a_task_needs(
    remote: Remote, executor: str, tmp_path: Path
) -> None:
    """A hit ends the run of a task that may run once on a node: the next one of its function gets the room."""
    fleet = remote.fleet
    file = tmp_path / "ran"
    await remote.workers(1, "--executor", executor, **{flows.RAN: str(file)})

    def cached(number: int) -> Task:
        return as_task(flows.double.options(placement={"max_parallel_per_node": 1}, name=f"n{number}")(number))

    for outcome in ("miss", "hit"):
        job = await fleet.submit(*(cached(number) for number in range(3)))
        assert (await fleet.end_of(job)).status == "completed"
        assert await fleet.results(job) == {"n0": 0, "n1": 2, "n2": 4}
        assert {row.cache_outcome for row in (await fleet.tasks(job)).values()} == {outcome}
    assert sorted(file.read_text().splitlines()) == ["double 0", "double 1", "double 2"]
