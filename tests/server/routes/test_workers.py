"""Workers over HTTP."""

from __future__ import annotations

import pytest

from aaiclick.orchestration import list_workers, register_worker, worker_heartbeat
from tests.server.conftest import Client, problem_in


async def test_workers_are_listed_and_shown(each_client: Client) -> None:
    first, second = await register_worker(), await register_worker(name="gpu box")
    listed = (await each_client.get("/workers")).json()["workers"]
    assert [worker["id"] for worker in listed] == [str(second.id), str(first.id)]
    shown = (await each_client.get(f"/workers/{second.id}")).json()
    assert shown == listed[0]
    assert (shown["name"], shown["status"]) == ("gpu box", "active")
    assert (await each_client.get("/workers", params={"status": "stopped"})).json() == {
        "workers": [],
        "next": None,
    }
    assert "active" in problem_in(await each_client.get("/workers", params={"status": "activ"}), 422)["detail"]


async def test_workers_come_in_pages(client: Client) -> None:
    made = [str((await register_worker()).id) for _ in range(3)]
    first = (await client.get("/workers", params={"limit": 2})).json()
    assert [worker["id"] for worker in first["workers"]] == made[:0:-1]
    second = (await client.get("/workers", params={"limit": 2, "before": first["next"]})).json()
    assert ([worker["id"] for worker in second["workers"]], second["next"]) == (made[:1], None)


async def test_draining_asks_and_stopping_ends(each_client: Client) -> None:
    worker = await register_worker()
    assert (await each_client.post(f"/workers/{worker.id}/drain")).json() == {"asked": True}
    (asked,) = await list_workers()
    assert asked.status == "stopping"
    assert (await each_client.post(f"/workers/{worker.id}/stop")).json() == {"asked": True}
    assert await worker_heartbeat(worker.id) is False
    assert (await each_client.post(f"/workers/{worker.id}/stop")).json() == {"asked": False}
    assert (await each_client.post(f"/workers/{worker.id}/drain")).json() == {"asked": False}


@pytest.mark.parametrize("verb", ["drain", "stop"])
async def test_a_worker_that_is_none(client: Client, verb: str) -> None:
    problem_in(await client.post(f"/workers/12345/{verb}"), 404)
    problem_in(await client.post(f"/workers/0/{verb}"), 422)
    problem_in(await client.get("/workers/12345"), 404)
