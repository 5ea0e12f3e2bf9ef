"""The graph of a job as pages show it."""

from __future__ import annotations

import pytest

from aaiclick.errors import InputError, NotFound
from aaiclick.orchestration.jobs import get_dependencies_for_job, get_tasks_for_job
from aaiclick.orchestration.queries.job_graphs import get_job_graph, list_job_tasks
from tests.server.outside_flows import chain
from tests.support.front_door import local, state

__all__ = ["local", "state"]


async def test_the_graph_is_whole(state: str) -> None:
    job = await chain.submit(x=1)
    graph = await get_job_graph(job.id)
    assert [row.id for row in graph.tasks] == [task.id for task in await get_tasks_for_job(job.id)]
    edges = {(edge.previous_id, edge.next_id) for edge in await get_dependencies_for_job(job.id)}
    assert {(row.previous_id, row.next_id) for row in graph.dependencies} == edges
    assert list(graph.groups) == []


async def test_some_of_a_graph(state: str) -> None:
    job = await chain.submit(x=1)
    graph = await get_job_graph(job.id, 2)
    assert [row.id for row in graph.tasks] == [task.id for task in await get_tasks_for_job(job.id)][:2]
    assert len((await get_job_graph(job.id, 1)).dependencies) == 1


async def test_tasks_come_in_pages_and_by_status(state: str) -> None:
    job = await chain.submit(x=1)
    first = await list_job_tasks(job.id, limit=2)
    rest = await list_job_tasks(job.id, after=first[-1].id)
    assert [row.id for row in (*first, *rest)] == [task.id for task in await get_tasks_for_job(job.id)]
    assert list(await list_job_tasks(job.id, "COMPLETED")) == []


async def test_what_is_refused(local: None) -> None:
    with pytest.raises(NotFound):
        await get_job_graph(12345)
    with pytest.raises(NotFound):
        await list_job_tasks(12345)
    with pytest.raises(InputError, match="Did you mean failed"):
        await list_job_tasks(1, "faild")
    with pytest.raises(InputError):
        await list_job_tasks(1, after=0)
