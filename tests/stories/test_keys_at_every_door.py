"""Submitting with a key: the same request gives the same job at each door, another one is refused by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import IdempotencyConflict
from aaiclick.orchestration import count_jobs, get_job, get_tasks_for_job, run_job
from aaiclick.orchestration.queries.event_feed import read_job_events
from tests.cli.conftest import Cli, cli
from tests.server.conftest import Client, client, each_client, opened, problem_in, surroundings
from tests.server.mcp.conftest import Agent

__all__ = ["cli", "client", "each_client", "surroundings"]

ENTRYPOINT = "tests.orchestration.sample_flows.add"
ASKED: dict[str, Any] = {"name": "sum", "entrypoint": ENTRYPOINT, "kwargs": {"a": 1, "b": 2}, "key": "monday"}


async def what_is_stored(job_id: str) -> tuple[int, int, list[str], Any]:
    stored = await get_job(int(job_id))
    assert stored is not None
    (task,) = await get_tasks_for_job(stored.id)
    events = await read_job_events(stored.id, 0)
    return await count_jobs(), stored.total_tasks, [each.move for each in events], task.kwargs


async def test_a1_the_same_request_twice_is_one_job(each_client: Client) -> None:
    first = await each_client.post("/jobs", json=ASKED)
    again = await each_client.post("/jobs", json=ASKED)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    jobs, tasks, moves, _ = await what_is_stored(first.json()["id"])
    assert (jobs, tasks, moves) == (1, 1, ["create"])


async def test_a1_many_at_once_are_one_job(each_client: Client) -> None:
    answers = await asyncio.gather(*(each_client.post("/jobs", json=ASKED) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    (job_id,) = {answer.json()["id"] for answer in answers}
    assert (await what_is_stored(job_id))[:3] == (1, 1, ["create"])


async def test_a2_another_payload_with_the_key_is_a_conflict(each_client: Client) -> None:
    job_id = (await each_client.post("/jobs", json=ASKED)).json()["id"]
    before = await what_is_stored(job_id)
    told = problem_in(await each_client.post("/jobs", json=ASKED | {"kwargs": {"a": 1, "b": 3}}), 409)
    assert told["code"] == "idempotency_conflict"
    assert told["type"] == "urn:aaiclick:problem:IdempotencyConflict"
    assert job_id in told["detail"]
    assert await what_is_stored(job_id) == before


@pytest.fixture
async def agent(surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Agent]:
    monkeypatch.setenv("AAICLICK_MCP_WRITE", "1")
    reset_settings()
    async for each in opened():
        yield Agent(each)


async def test_a_key_means_the_same_at_each_door(agent: Agent, cli: Cli) -> None:
    job_id = (await agent.client.post("/jobs", json=ASKED)).json()["id"]

    async def command(kwargs: str) -> Any:
        words = ("run-job", "sum", "--entrypoint", ENTRYPOINT, "--kwargs", kwargs, "--key", "monday", "--json")
        return await asyncio.get_running_loop().run_in_executor(None, lambda: cli(*words))

    assert (await agent.ask("submit_job", **ASKED))["id"] == job_id
    assert (await command('{"b": 2, "a": 1}')).data["id"] == job_id
    assert str((await run_job("sum", ENTRYPOINT, {"a": 1, "b": 2}, key="monday")).id) == job_id

    refused = await agent.refused("submit_job", **ASKED | {"kwargs": {"a": 1, "b": 3}})
    assert refused["code"] == "IdempotencyConflict"
    ended = await command('{"a": 1, "b": 3}')
    assert ended.code == 5
    assert "cannot be submitted with key 'monday'" in ended.err
    with pytest.raises(IdempotencyConflict) as conflict:
        await run_job("sum", ENTRYPOINT, {"a": 1, "b": 3}, key="monday")
    assert str(conflict.value.job_id) == job_id
    assert await count_jobs() == 1
