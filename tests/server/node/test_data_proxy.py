"""Statements of nodes that go through the server: with the token of a node, and nothing of the server's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aaiclick.config import reset_settings, settings
from aaiclick.data.clients import coordinators
from aaiclick.data.clients.coordinators import SCHEME, node_token
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.errors import DataRefused, DataUnreachable
from aaiclick.orchestration.access.tokens import revoke_token
from aaiclick.orchestration.coordinator.http.credentials import Credentials
from aaiclick.orchestration.coordinator.http.protocol import GivenToken
from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.node import data_proxy
from tests.support.front_door import local
from tests.support.node_server import NodeServer, node_server

__all__ = ["local"]

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@pytest.fixture
async def server(local: Path, migrated_sql_url: str) -> AsyncIterator[NodeServer]:
    async with node_server(migrated_sql_url, *Role) as opened:
        yield opened


@pytest.fixture
def node(server: NodeServer, monkeypatch: pytest.MonkeyPatch) -> NodeServer:
    """Settings of a node in this process; those of the server stay, as both are here."""
    monkeypatch.setenv("AAICLICK_API_TOKEN", server.tokens["worker"])
    monkeypatch.setenv("AAICLICK_CH_URL", settings().ch_url)
    monkeypatch.setenv("AAICLICK_COORDINATOR_URL", server.url)
    reset_settings()
    return server


async def asked(server: NodeServer, sql: bytes, role: Role = Role.WORKER, **params: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {server.tokens[role]}"}
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        return await client.post("/api/v1/node/data", content=sql, headers=headers, params=params)


async def test_a_client_works_over_the_server(node: NodeServer) -> None:
    client = await open_client(f"{SCHEME}servers")
    try:
        await client.command("CREATE TABLE t_through (x Int64) ENGINE = MergeTree ORDER BY x")
        await client.command("INSERT INTO t_through SELECT number FROM numbers(300000)")
        rows = await client.rows("SELECT x FROM t_through ORDER BY x")
        assert list(rows.columns[0]) == list(range(300000))
        with pytest.raises(DataRefused, match="nowhere"):
            await client.rows("SELECT * FROM nowhere")
        await client.command("DROP TABLE t_through")
    finally:
        await close_client(f"{SCHEME}servers")


async def test_bodies_of_any_length_are_passed_on(server: NodeServer) -> None:
    """Others may have nine megabytes: these are not kept here."""
    statement = b"SELECT 1 /*" + b"x" * 12_000_000 + b"*/"
    answer = await asked(server, statement, max_query_size="100000000")
    assert (answer.status_code, answer.text) == (200, "1\n")


async def test_only_tokens_of_nodes_are_taken(server: NodeServer) -> None:
    for role in set(Role) - {Role.WORKER}:
        assert (await asked(server, b"SELECT 1", role)).status_code == 403, role
    async with httpx.AsyncClient(base_url=server.url) as client:
        for given in ({}, {"authorization": "Bearer aai_1_" + "x" * 43}, {"x-clickhouse-user": "default"}):
            answer = await client.post("/api/v1/node/data", content=b"SELECT 1", headers=given)
            assert (answer.status_code, answer.headers["x-clickhouse-exception-code"]) == (401, "516")


async def test_logins_of_the_caller_are_left_out(server: NodeServer) -> None:
    answer = await asked(server, b"SELECT 1", user="nobody", password="wrong", database="none")
    assert (answer.status_code, answer.text) == (200, "1\n")


async def test_files_and_addresses_of_the_server_are_closed(server: NodeServer) -> None:
    for sql in (b"SELECT * FROM file('/etc/passwd', 'LineAsString')", b"SELECT * FROM url('http://127.0.0.1:1/', CSV)"):
        answer = await asked(server, sql)
        assert answer.status_code != 200
        assert "is closed here" in answer.text


async def test_a_revoked_token_is_refused(server: NodeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await asked(server, b"SELECT 1")).status_code == 200
    monkeypatch.setattr("aaiclick.server.node.node_tokens.TRUSTED_S", 0)
    await revoke_token(int(server.tokens["worker"].split("_")[1]))
    assert (await asked(server, b"SELECT 1")).status_code == 401


async def test_a_server_without_clickhouse_says_so(server: NodeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_NODE_CH_URL", "clickhouse://nobody@127.0.0.1:1/none")
    reset_settings()
    answer = await asked(server, b"SELECT 1")
    assert (answer.status_code, "Cannot reach ClickHouse" in answer.text) == (503, True)


async def test_an_answer_that_is_cut_off_is_no_answer(server: NodeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cut(*_: Any) -> AsyncIterator[bytes]:
        yield b"1\n"
        raise asyncio.IncompleteReadError(b"", 1)

    monkeypatch.setattr(data_proxy, "_body", cut)
    with pytest.raises(httpx.RemoteProtocolError):
        await asked(server, b"SELECT number FROM numbers(2)")


async def test_a_server_that_is_away(node: NodeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_COORDINATOR_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("aaiclick.data.clients.servers.REPEATED_S_MAX", 0.05)
    reset_settings()
    client = await open_client(f"{SCHEME}away")
    with pytest.raises(DataUnreachable):
        await client.rows("SELECT 1")
    await close_client(f"{SCHEME}away")


async def test_the_token_is_the_newest_that_the_node_was_given(node: NodeServer) -> None:
    config = settings()
    assert node_token() == node.tokens["worker"]
    credentials = Credentials(config.api_token, config.local_root / "node_tokens")
    credentials.digest()
    credentials.take(GivenToken(7, 100.0))
    assert node_token() == credentials.text != config.api_token
    assert coordinators.PATH == data_proxy.PATH


async def test_a_node_without_an_address_opens_no_engine(node: NodeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AAICLICK_CH_URL")
    reset_settings()
    assert settings().ch_url.startswith(SCHEME)
    assert not settings().is_chdb
