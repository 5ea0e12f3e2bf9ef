"""The server in this process, asked as a client asks it: through its whole application, door and all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from aaiclick.config import reset_settings, settings
from aaiclick.orchestration.access import untrusted_entrypoints
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.server.app import create_app
from aaiclick.server.auth.refusals import Refusals

ROLES = ("viewer", "operator", "author", "admin", "worker", "join", "replica")
FLOWS = "tests.orchestration.sample_flows"


class Client(httpx.AsyncClient):
    """Asks with the token of a role, an admin's unless told otherwise."""

    tokens: dict[str, str]
    server: Any

    def of(self, role: str) -> dict[str, str]:
        """The header that says who asks."""
        return {"Authorization": f"Bearer {self.tokens[role]}"}


@cache
def built(hosts: tuple[str, ...]) -> FastAPI:
    """The application is built once: each test opens it anew, on a state of its own."""
    return create_app(hosts=hosts)


async def opened() -> AsyncIterator[Client]:
    app = built(tuple(settings().server_hosts))
    app.state.refusals, app.state.mcp_write = Refusals(), settings().mcp_write
    async with app.router.lifespan_context(app):
        tokens = {role: (await create_token(role, role)).text for role in ROLES}
        async with Client(transport=httpx.ASGITransport(app), base_url="http://localhost:8765/api/v1") as client:
            client.tokens, client.server = tokens, app
            client.headers.update(client.of("admin"))
            yield client


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A local root of the test's own; the tests' own flows may be submitted from outside."""
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", "tests.orchestration,tests.server")
    monkeypatch.delenv("AAICLICK_SQL_URL", raising=False)
    untrusted_entrypoints._known.clear()
    reset_settings()
    yield tmp_path / "root"
    reset_settings()


@pytest.fixture
async def client(surroundings: Path) -> AsyncIterator[Client]:
    """On SQLite."""
    async for each in opened():
        yield each


@pytest.fixture
async def each_client(
    migrated_sql_url: str, surroundings: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Client]:
    """On each of the three databases."""
    monkeypatch.setenv("AAICLICK_SQL_URL", migrated_sql_url)
    reset_settings()
    async for each in opened():
        yield each


def problem_in(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The problem that an answer tells, of the form that all have."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert {"type", "title", "detail"} <= body.keys()
    return body
