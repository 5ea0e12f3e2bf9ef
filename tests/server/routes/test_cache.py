"""Remembered results over HTTP; and jobs from outside whose tasks are cached."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.orchestration import ajob_test, get_job, get_job_result, get_tasks_for_job
from aaiclick.orchestration.access.audit import list_audit
from tests.server.conftest import Client, problem_in

DOUBLE = "tests.orchestration.cached_flows.double"
ASKED: dict[str, Any] = {"name": "double", "entrypoint": DOUBLE, "kwargs": {"x": 4}}


async def run(client: Client, **changes: Any) -> tuple[Any, str | None]:
    """The result of a job from outside, and whether its task was in the cache."""
    answer = await client.post("/jobs", json=ASKED | changes)
    assert answer.status_code == 201, answer.text
    job = await get_job(int(answer.json()["id"]))
    assert job is not None
    await ajob_test(job)
    (task,) = await get_tasks_for_job(job.id)
    shown = (await client.get(f"/tasks/{task.id}")).json()
    assert shown["cache_outcome"] == task.cache_outcome
    assert shown["cached_from_id"] == (None if task.cached_from_id is None else str(task.cached_from_id))
    return await get_job_result(job.id), task.cache_outcome


async def test_tasks_from_outside_follow_the_same_rules(client: Client) -> None:
    assert [await run(client) for _ in range(2)] == [(8, "miss"), (8, "hit")]
    assert await run(client, cache_mode="refresh") == (8, "refresh")
    assert await run(client, cache_mode="off") == (8, None)
    assert await run(client, kwargs={"x": 5}) == (10, "miss")


async def test_they_are_listed_page_by_page_and_removed(client: Client) -> None:
    for x in (1, 2, 3):
        await run(client, kwargs={"x": x})
    page = (await client.get("/cache", params={"limit": 2})).json()
    rest = (await client.get("/cache", params={"before": page["next"], "limit": 2})).json()
    assert [len(page["entries"]), len(rest["entries"]), rest["next"]] == [2, 1, None]
    entry = page["entries"][0]
    assert (entry["entrypoint"], entry["kind"], entry["label"]) == (DOUBLE, "cache", None)
    assert (await client.get("/cache", params={"entrypoint": "no.body"})).json()["entries"] == []
    assert (await client.post("/cache/clear", json={"entry_id": entry["id"]})).json() == {"removed": 1}
    problem_in(await client.post("/cache/clear", json={"entry_id": entry["id"]}), 404)
    assert (await client.post("/cache/clear", json={"entrypoint": DOUBLE})).json() == {"removed": 2}
    assert (await client.post("/cache/clear")).json() == {"removed": 0}
    verbs = [(each.verb, each.target) for each in await list_audit(None, 10) if each.verb == "clear cache"]
    assert ("clear cache", repr(DOUBLE)) in verbs


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("operator", 200)])
async def test_removing_them_is_for_operators(client: Client, role: str, status: int) -> None:
    answer = await client.post("/cache/clear", headers=client.of(role))
    assert answer.status_code == status


async def test_a_mode_that_there_is_not_is_refused(client: Client) -> None:
    told = problem_in(await client.post("/jobs", json=ASKED | {"cache_mode": "of"}), 422)
    assert "use, refresh, off" in told["detail"]
