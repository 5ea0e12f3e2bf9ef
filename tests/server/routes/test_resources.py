"""Resources over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.orchestration import NodeDescription, register_worker
from tests.server.conftest import Client, problem_in


async def test_capacities_are_set_listed_in_pages_and_removed_and_the_audit_tells(each_client: Client) -> None:
    unit = (await each_client.put("/resources/licence:abaqus", json={"amount": 5})).json()
    assert (unit["name"], unit["node"], unit["size"], unit["free"]) == ("licence:abaqus", None, 5, 5)
    await register_worker(node=NodeDescription("box", resources={"gpu": 2, "gpu_memory_mb": 100}))
    first = (await each_client.get("/resources", params={"limit": 2})).json()
    assert [each["name"] for each in first["resources"]] == ["licence:abaqus", "gpu"]
    second = (await each_client.get("/resources", params={"limit": 2, "after": first["next"]})).json()
    assert ([each["slot"] for each in second["resources"]], second["next"]) == ([1], None)
    gpus = (await each_client.get("/resources", params={"name": "gpu", "node": "box"})).json()["resources"]
    assert [(each["device"], each["memory_mb"], each["holders"]) for each in gpus] == [("0", 100, []), ("1", 100, [])]
    removed = (await each_client.post("/resources/licence:abaqus/remove")).json()
    assert removed == {"removed": "licence:abaqus"}
    told = (await each_client.get("/audit")).json()["entries"]
    assert [(change["verb"], change["target"]) for change in told[:2]] == [
        ("remove", "resource licence:abaqus"),
        ("set", "resource licence:abaqus"),
    ]


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("gpu", {"amount": 1}, 422),
        ("a%20b", {"amount": 1}, 422),
        ("seat", {"amount": -1}, 422),
        ("seat", {"amount": "many"}, 422),
        ("seat", {}, 422),
        ("seat", {"amount": 0.0001}, 422),
        ("seat", {"amount": 1, "more": 2}, 422),
    ],
)
async def test_bad_input_sets_nothing(client: Client, name: str, body: dict[str, Any], status: int) -> None:
    problem_in(await client.put(f"/resources/{name}", json=body), status)
    assert (await client.get("/resources")).json() == {"resources": [], "next": None}


async def test_a_capacity_that_is_none(client: Client) -> None:
    problem_in(await client.post("/resources/seat/remove"), 404)
    problem_in(await client.get("/resources", params={"after": "x"}), 422)
