"""The tools, called as a client calls them: through the whole application, door and all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from tests.server.conftest import Client, client, each_client, opened, surroundings

__all__ = ["client", "each_client", "surroundings"]

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class Agent:
    """Calls tools with the token of a role."""

    def __init__(self, client: Client, role: str = "admin") -> None:
        self.client = client
        self.role = role

    def of(self, role: str) -> Agent:
        """The same, with another token."""
        return Agent(self.client, role)

    async def post(self, method: str, params: dict[str, Any], **headers: str) -> Any:
        """What the endpoint answers."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.client.post(
            "http://localhost:8765/mcp", json=body, headers=HEADERS | self.client.of(self.role) | headers
        )

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The whole answer of a call."""
        answer = await self.post("tools/call", {"name": tool, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["result"]
        return found

    async def ask(self, tool: str, /, **arguments: Any) -> Any:
        """The answer of a call that is to succeed."""
        return (await self.whole(tool, **arguments))["answer"]

    async def whole(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The same, with what was cut."""
        found = await self.call(tool, **arguments)
        assert not found.get("isError"), found
        assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
        whole: dict[str, Any] = found["structuredContent"]
        return whole

    async def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a call that is to fail is told."""
        found = await self.call(tool, **arguments)
        assert found.get("isError") is True, found
        assert "structuredContent" not in found
        error: dict[str, Any] = json.loads(found["content"][0]["text"])["error"]
        assert error["code"]
        assert error["what"]
        assert error["to_do"]
        return error

    async def names(self) -> list[str]:
        """The tools that it is offered."""
        return [tool["name"] for tool in (await self.post("tools/list", {})).json()["result"]["tools"]]


@pytest.fixture
def agent(client: Client) -> Agent:
    """On SQLite; only reading."""
    return Agent(client)


@pytest.fixture
async def writer(surroundings: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Agent]:
    """Where changes were allowed at start."""
    monkeypatch.setenv("AAICLICK_MCP_WRITE", "1")
    reset_settings()
    async for each in opened():
        yield Agent(each)


@pytest.fixture
def each_agent(each_client: Client) -> Agent:
    """On each of the three databases."""
    return Agent(each_client)
