"""What stands behind the question mark."""

from __future__ import annotations

import pytest

from aaiclick.orchestration import create_job, get_job
from tests.orchestration import sample_flows as flows
from tests.server.auth.test_actors import HOST, RULES
from tests.server.conftest import Client, problem_in

NOBODY_ASKS = {"/healthz", "/readyz", "/mcp", "/api/v1/callbacks/{token}"}
"""Also callbacks: services add to an address what they like."""


async def test_what_nobody_asks_for_is_refused_everywhere(client: Client) -> None:
    """Also where nothing is asked for: silence would mean that it counted."""
    for rule in RULES:
        method, path = rule.split()
        if path in NOBODY_ASKS:
            continue
        path = (
            path.replace("{name}", "x").replace("{job_id}", "5").replace("{task_id}", "5").replace("{worker_id}", "5")
        )
        path = path.replace("{kind}", "job").replace("{ending}", "1234")
        body = {"name": "x", "entrypoint": "tests.x"} if method != "GET" else None
        answer = await client.request(method, f"{HOST}{path}", params={"nobody_asks": "a\x1b"}, json=body)
        assert "nobody_asks" in problem_in(answer, 422)["detail"], rule


@pytest.mark.parametrize("asked", ["limit=1&limit=2", "limit=1&limit=1", "status=failed&status=pending", "x=1&x=2"])
async def test_nothing_is_said_twice(client: Client, asked: str) -> None:
    assert "given twice" in problem_in(await client.get(f"/jobs?{asked}"), 422)["detail"]


async def test_a_wish_in_the_wrong_place_changes_nothing(client: Client) -> None:
    job = await create_job("x", flows.add, kwargs={"a": 1, "b": 2})
    refused = await client.post(f"/jobs/{job.id}/cancel?dry_run=true")
    assert "dry_run" in problem_in(refused, 422)["detail"]
    stored = await get_job(job.id)
    assert stored is not None
    assert stored.status == "pending"


async def test_a_secret_there_is_not_told(client: Client) -> None:
    told = problem_in(await client.get("/objects?token=swordfish"), 422)["detail"]
    assert ("token" in told, "swordfish" in told) == (True, False)
