"""Whether the server lives and can work."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.orchestration.queries.health import Check, Health
from aaiclick.server.routes import health as room
from tests.server.conftest import Client, problem_in

ROOT = "http://anything.example"


async def test_the_probes_need_no_token_and_no_name(client: Client) -> None:
    del client.headers["authorization"]
    assert (await client.get(f"{ROOT}/healthz")).json() == {"status": "alive"}
    assert (await client.get(f"{ROOT}/readyz")).json() == {"status": "ready"}


async def test_not_ready_tells_no_details(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> Health:
        return Health([Check("database", False, "postgresql://u:***@secret-host/db"), Check("schema", True, "")])

    monkeypatch.setattr(room, "health_check", broken)
    problem = problem_in(await client.get(f"{ROOT}/readyz"), 503)
    assert "database" in problem["detail"]
    assert "secret-host" not in str(problem)
    assert (await client.get(f"{ROOT}/healthz")).status_code == 200


async def test_how_everything_is_needs_a_token(client: Client) -> None:
    found = (await client.get("/health", headers=client.of("viewer"))).json()
    assert [check["name"] for check in found["checks"]][:2] == ["database", "schema"]
    del client.headers["authorization"]
    problem_in(await client.get("/health"), 401)


async def test_many_who_ask_at_once_cost_one_look(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked who they are here."""
    looks, asked = 0, asyncio.Event()

    async def slow() -> Health:
        nonlocal looks
        looks += 1
        await asked.wait()
        return Health([Check("database", True, ""), Check("schema", True, "")])

    monkeypatch.setattr(room, "health_check", slow)
    asking = [asyncio.create_task(client.get(f"{ROOT}/readyz")) for _ in range(20)]
    for _ in range(500):  # nothing on the way waits for anything but its turn
        await asyncio.sleep(0)
    asking[0].cancel()  # whoever leaves takes the answer from nobody
    asked.set()
    answers = await asyncio.gather(*asking[1:])
    assert ({answer.status_code for answer in answers}, looks) == ({200}, 1)
    assert (await client.get(f"{ROOT}/readyz")).status_code == 200
    assert looks == 2
