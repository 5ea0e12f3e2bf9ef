"""Bodies on machines without a database: what they ask the front door for goes through their worker's server."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.store import tables
from tests.support.fleet import Fleet, fleet
from tests.support.remote import Remote, remote_fleet

__all__ = ["fleet"]


@pytest.fixture
async def remote(fleet: Fleet) -> Remote:
    return await remote_fleet(fleet)


def asking(body: str, **kwargs: object) -> Task:
    return Task(f"remote_flows.{body}", kwargs, name=body)


@pytest.mark.parametrize("executor", ["process", "inline"])
async def test_bodies_submit_apply_wait_and_read_results(remote: Remote, executor: str) -> None:
    fleet = remote.fleet
    fleet.start("background", "start")
    await remote.workers(1, "--executor", executor, concurrency=4)
    tasks = [asking("submits", count=3), asking("submits_blocking", count=2), asking("applies", count=3)]
    job = await fleet.submit(*tasks, asking("asks_for_more"))
    ended = await fleet.end_of(job)
    assert ended.status == "completed", ended.error
    results = await fleet.results(job)
    assert (results["submits"], results["submits_blocking"]) == ([0, 2, 4], [0, 2])
    assert "AAICLICK_COORDINATOR_URL is set" in results["asks_for_more"]
    rows = await fleet.rows(select(tables.jobs))
    by_name = {row.name: row for row in rows}
    assert len(rows) == 4
    assert (by_name["made"].id, by_name["made"].completed_tasks) == (results["applies"], 3)
    assert by_name[job.name].completed_tasks == 5
    assert not list(fleet.home.glob("node-*/local.db"))


async def test_a_body_reads_no_job_of_others(remote: Remote) -> None:
    fleet = remote.fleet
    await remote.workers(1)
    other = await fleet.submit(*fleet.quick(1))
    job = await fleet.submit(asking("looks_at", job_id=other.id))
    await fleet.end_of(job)
    (said,) = (await fleet.results(job)).values()
    assert said.startswith("NotAllowed: ")
    assert "nor was it submitted on this node" in said
