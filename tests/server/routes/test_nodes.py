"""Nodes over HTTP."""

from __future__ import annotations

import pytest

from aaiclick.orchestration import NodeDescription, list_workers, register_worker
from tests.server.conftest import Client, problem_in


async def begin(name: str = "box") -> None:
    await register_worker(node=NodeDescription(name, pool="p", capabilities={"gpu": "nvidia"}))


async def test_nodes_are_listed_in_pages_and_shown(client: Client) -> None:
    for name in ("b", "a/1", "c"):
        await begin(name)
    first = (await client.get("/nodes", params={"limit": 2, "status": "healthy", "pool": "p"})).json()
    assert ([node["name"] for node in first["nodes"]], first["next"]) == (["a/1", "b"], "b")
    second = (await client.get("/nodes", params={"limit": 2, "pool": "p", "after": first["next"]})).json()
    assert ([node["name"] for node in second["nodes"]], second["next"]) == (["c"], None)
    shown = (await client.get("/nodes/b")).json()
    assert shown == first["nodes"][1]
    assert (shown["capabilities"], shown["executor_types"]) == ({"gpu": "nvidia"}, ["python"])
    problem_in(await client.get("/nodes", params={"state": "shut"}), 422)


async def test_a_node_is_closed_emptied_and_removed_and_the_audit_tells(each_client: Client) -> None:
    await begin()
    for verb, state in (("cordon", "cordoned"), ("uncordon", "open"), ("drain", "draining")):
        assert (await each_client.post(f"/nodes/box/{verb}")).json()["state"] == state
    assert [worker.status for worker in await list_workers()] == ["stopping"]
    problem_in(await each_client.post("/nodes/box/remove", json={}), 409)
    removed = (await each_client.post("/nodes/box/remove", json={"force": True})).json()
    assert removed == {"name": "box", "sessions": 1, "freed": 0}
    told = (await each_client.get("/audit")).json()["entries"]
    assert [change["verb"] for change in told[:5]] == ["remove", "remove", "drain", "uncordon", "cordon"]
    assert told[0]["outcome"] == "1 sessions ended, 0 runs given to others"


@pytest.mark.parametrize("verb", ["cordon", "uncordon", "drain", "remove"])
async def test_a_node_that_is_none(client: Client, verb: str) -> None:
    problem_in(await client.post(f"/nodes/nobody/{verb}", json={}), 404)
    problem_in(await client.get("/nodes/nobody"), 404)
