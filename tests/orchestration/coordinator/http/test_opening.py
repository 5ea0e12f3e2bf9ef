"""Opening the coordinator of a server: with the token of a node, or with one for joining."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aaiclick.config import Settings, settings
from aaiclick.errors import NoDatabase, NotAllowed, NotAuthenticated
from aaiclick.orchestration.access.tokens import create_token, list_tokens, revoke_token
from aaiclick.orchestration.connections import connected, employed
from aaiclick.orchestration.coordinator.http import opening
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.opening import opened_coordinator
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.server.node import node_tokens
from tests.support.node_server import NodeServer, node_server

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
NODE = NodeDescription("n1")


@pytest.fixture
async def server(migrated_sql_url: str) -> AsyncIterator[NodeServer]:
    async with node_server(migrated_sql_url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def processes() -> Iterator[None]:
    """Each test begins as new processes do."""
    opening._credentials.clear()
    yield
    opening._credentials.clear()


def config(server: NodeServer, token: str, root: Path) -> Settings:
    return replace(settings(), coordinator_urls=(server.url,), api_token=token, local_root=root)


async def opened(server: NodeServer, token: str, root: Path) -> HttpCoordinator:
    return await opened_coordinator(config(server, token, root), NODE)


async def test_a_node_joins_once_and_comes_back_with_its_own_token(server: NodeServer, tmp_path: Path) -> None:
    made = await create_token("j", "join")
    for _ in range(2):
        coordinator = await opened(server, made.text, tmp_path)
        await coordinator.register(hostname="h", pid=1)
        coordinator.close()
        opening._credentials.clear()
    assert [token.uses_left for token in await list_tokens() if token.role == "join"] == [0]
    with pytest.raises(NotAllowed, match="used up"):
        await opened(server, made.text, tmp_path / "elsewhere")


async def test_the_workers_of_a_machine_join_once(server: NodeServer, tmp_path: Path) -> None:
    made = await create_token("j", "join", uses=5)
    coordinators = []
    for _ in range(2):
        opening._credentials.clear()
        coordinators.append(asyncio.create_task(opened(server, made.text, tmp_path)))
        await asyncio.sleep(0)
    for task in coordinators:
        (await task).close()
    assert [token.uses_left for token in await list_tokens() if token.role == "join"] == [4]


async def test_a_node_whose_token_was_revoked_joins_anew_if_it_may(
    server: NodeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_tokens, "TRUSTED_S", 0.0)
    made = await create_token("j", "join", uses=2)
    (await opened(server, made.text, tmp_path)).close()
    (bound,) = [token for token in await list_tokens() if token.joined_with]
    await revoke_token(bound.id)
    opening._credentials.clear()
    (await opened(server, made.text, tmp_path)).close()
    assert [token.uses_left for token in await list_tokens() if token.role == "join"] == [0]
    await revoke_token(made.token.id)
    await revoke_token(next(token.id for token in await list_tokens() if token.joined_with and not token.revoked_at))
    opening._credentials.clear()
    with pytest.raises(NotAuthenticated):
        await opened(server, made.text, tmp_path)


async def test_a_token_of_a_worker_is_used_as_it_is(server: NodeServer, tmp_path: Path) -> None:
    (await opened(server, server.tokens["worker"], tmp_path)).close()
    assert not (tmp_path / "node_tokens").exists()
    with pytest.raises(NotAuthenticated):
        await opened(server, "aai_1_" + "x" * 43, tmp_path)


async def test_whoever_asks_a_server_opens_no_database(
    server: NodeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = config(server, server.tokens["worker"], tmp_path)
    monkeypatch.setattr("aaiclick.orchestration.connections.settings", lambda: chosen)
    async with employed() as coordinator:
        assert isinstance(coordinator, HttpCoordinator)
        with pytest.raises(NoDatabase, match="AAICLICK_COORDINATOR_URL"):
            await asyncio.create_task(_open(), context=contextvars.Context())


async def _open() -> None:
    async with connected():
        pass
