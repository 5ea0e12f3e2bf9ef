"""Callbacks over HTTP: a token in the path, and nothing else, hands something to the task that gave it."""

from __future__ import annotations

import os
import socket

import pytest

from aaiclick.orchestration import create_job, create_task, get_task
from aaiclick.orchestration.access.callbacks import new_token
from aaiclick.orchestration.connections import coordinated
from aaiclick.orchestration.models import Claim
from aaiclick.server.transport.access_log import shown_address
from tests.server.conftest import Client, problem_in


async def waiting() -> tuple[Claim, str]:
    """A task that waits for a callback, and the token that it gave."""
    await create_job("x", create_task("tests.orchestration.sample_flows.nothing"))
    token, digest = new_token()
    async with coordinated() as coordinator:
        worker = await coordinator.register(hostname=socket.gethostname(), pid=os.getpid())
        (claim,) = await coordinator.claim(worker.id, limit=1)
        assert await coordinator.callback(claim, digest) is None
    return claim, token


async def found(claim: Claim) -> str | None:
    async with coordinated() as coordinator:
        return await coordinator.callback(claim, "")


async def test_it_needs_no_token_of_the_server_and_counts_once(each_client: Client) -> None:
    claim, token = await waiting()
    del each_client.headers["Authorization"]
    answer = await each_client.post(f"/callbacks/{token}", json={"rows": 3})
    assert (answer.status_code, answer.json()) == (200, {"accepted": True, "repeated": False})
    assert await found(claim) == '{"rows":3}'
    again = await each_client.post(f"/callbacks/{token}", json={"rows": 3})
    assert again.json() == {"accepted": True, "repeated": True}
    problem_in(await each_client.post(f"/callbacks/{token}", json={"rows": 4}), 409)
    assert await found(claim) == '{"rows":3}'


async def test_a_text_is_handed_on_as_it_is(client: Client) -> None:
    claim, token = await waiting()
    assert (await client.post(f"/callbacks/{token}", content="größe: 3".encode())).status_code == 200
    assert await found(claim) == "größe: 3"


async def test_nobody_waits(client: Client) -> None:
    claim, token = await waiting()
    problem_in(await client.post(f"/callbacks/{new_token()[0]}"), 404)
    problem_in(await client.post("/callbacks/short"), 422)
    problem_in(await client.post(f"/callbacks/{token}", content=b"\xff"), 400)
    problem_in(await client.post(f"/callbacks/{token}", content=b"a\x00b"), 422)
    problem_in(await client.get(f"/callbacks/{token}"), 405)
    task = await get_task(claim.task_id)
    assert task is not None
    async with coordinated() as coordinator:
        await coordinator.cancel(claim.job_id)
    problem_in(await client.post(f"/callbacks/{token}", json=1), 404)


async def test_a_body_may_be_as_large_as_arguments(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    _, token = await waiting()
    problem_in(await client.post(f"/callbacks/{token}", content=b"x" * 20_000_000), 413)


def test_the_log_does_not_show_it() -> None:
    for path in ("/api/v1/callbacks/abc?x=1", "/api/v1/%63allbacks/abc", "/x/callbacks/abc/def"):
        assert "abc" not in shown_address(path)
