"""Whether the server lives and can work."""

from __future__ import annotations

import pytest

from aaiclick.orchestration.health import Check, Health
from aaiclick.server import health as room
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
