"""`/mcp`: the protocol, the door in front of it, roles, and how calls fail."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration import create_job
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.server.mcp import agents, endpoint
from aaiclick.server.mcp.tools import CHANGING, NOTICE, READING
from tests.cli.admin.test_server import new_token, serving
from tests.orchestration import sample_flows as flows
from tests.server.conftest import Client, problem_in
from tests.server.mcp.conftest import HEADERS, Agent

URL = "http://localhost:8765/mcp"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_the_protocol_lists_and_calls_tools(client: Client, mode: str) -> None:
    """Old clients shake hands first, new ones do not."""
    asking = httpx2.AsyncClient(transport=httpx2.ASGITransport(client.server), headers=client.of("viewer"))
    async with asking, McpClient(streamable_http_client(URL, http_client=asking), mode=mode) as agent:
        listed = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert listed.keys() == READING.keys()
        found = await agent.call_tool("find_jobs", {"status": "failed"})
        assert found.structured_content == {"answer": {"jobs": [], "next": None}, "cut": [], "notice": NOTICE}
        assert "find_jobs" in str(agent.instructions)


async def test_tools_that_change_something_exist_only_where_that_was_allowed(agent: Agent, monkeypatch: Any) -> None:
    assert set(await agent.names()) == READING.keys()
    answer = await agent.post("tools/call", {"name": "cancel_job", "arguments": {"job_id": "12345"}})
    assert "--mcp-write" in answer.json()["error"]["message"]
    unknown = await agent.post("tools/call", {"name": "nothing", "arguments": {}})
    assert unknown.json()["error"] == {"code": -32602, "message": "there is no such tool"}


async def test_each_role_is_offered_its_tools_and_refused_the_others(writer: Agent) -> None:
    assert set(await writer.of("viewer").names()) == READING.keys()
    assert set(await writer.of("operator").names()) == READING.keys() | CHANGING.keys() - {"submit_job", "register_job"}
    assert set(await writer.of("author").names()) == READING.keys() | CHANGING.keys()
    told = await writer.of("viewer").refused("cancel_job", job_id="12345")
    assert (told["code"], "viewer" in told["what"]) == ("NotAllowed", True)
    told = await writer.of("operator").refused("submit_job", name="x", entrypoint="tests.x")
    assert told["code"] == "NotAllowed"


async def test_every_tool_says_what_it_does(writer: Agent) -> None:
    listed = (await writer.post("tools/list", {})).json()["result"]["tools"]
    for tool in listed:
        assert len(tool["description"]) > 30
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["annotations"]["readOnlyHint"] is (tool["name"] in READING)
        assert tool["annotations"]["openWorldHint"] is False
    destructive = {tool["name"] for tool in listed if tool["annotations"]["destructiveHint"]}
    assert {"cancel_job", "clear_task", "stop_worker"} <= destructive <= CHANGING.keys()


# ---------------------------------------------------------------- the door


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer x"}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_the_door_is_the_servers(agent: Agent, headers: dict[str, str], status: int) -> None:
    problem_in(await agent.post("tools/list", {}, **headers), status)


async def test_a_body_that_is_too_large(agent: Agent) -> None:
    problem_in(await agent.post("tools/call", {"name": "find_jobs", "arguments": {"x": "x" * 1_200_000}}), 413)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_nothing_is_told_unasked(agent: Agent, method: str) -> None:
    problem_in(await agent.client.request(method, URL, headers=HEADERS), 405)


NO_REQUESTS = (b"", b"{", b"[]", b'"x"', b"null", b'{"jsonrpc": "2.0"}', b"[" * 100_000, b'{"jsonrpc":"2.0","id":1}')


@pytest.mark.parametrize("version", [None, "2025-11-25", "2026-07-28", "1999-01-01"])
async def test_what_is_no_request_is_refused(agent: Agent, version: str | None) -> None:
    headers = HEADERS | ({} if version is None else {"MCP-Protocol-Version": version})
    for body in NO_REQUESTS:
        answer = await agent.client.post(URL, content=body, headers=headers)
        assert answer.status_code == 400, answer.text
        assert "Traceback" not in answer.text


CURRENT = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


HOSTILE = (
    r'{"name_like": "\ud800"}',
    r'{"\ud800": 1}',
    '{"x": ' + "[" * 500 + "]" * 500 + "}",
    '{"x": ' + "[" * 50_000 + "]" * 50_000 + "}",
    '{"limit": ' + "9" * 5000 + "}",
    '{"limit": 1e400}',
    '{"limit": NaN}',
    "[]",
    '"x"',
)


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_hostile_arguments_are_answered(agent: Agent, version: str) -> None:
    """By the protocol where it cannot read them, else by the tool."""
    meta = json.dumps(CURRENT if version == "2026-07-28" else {})
    names = {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "find_jobs"}
    for given in HOSTILE:
        params = f'{{"_meta": {meta}, "name": "find_jobs", "arguments": {given}}}'
        body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
        answer = await agent.client.post(URL, content=body.encode(), headers=HEADERS | names)
        assert answer.status_code in (200, 400), given[:80]
        told = answer.json()
        assert "error" in told or told["result"]["isError"] is True
        assert "Traceback" not in answer.text


async def test_calls_at_once_are_each_their_own(writer: Agent) -> None:
    job = await create_job("sum", flows.add(1, 2))
    roles = ["operator", "author", "admin"] * 5
    asking = [writer.of(role).ask("cancel_job", job_id=str(job.id)) for role in roles]
    refused = [writer.of("viewer").refused("cancel_job", job_id=str(job.id)) for _ in range(5)]
    found = await asyncio.gather(*asking, *refused)
    assert sum(each.get("cancelled") is True for each in found) == 1
    told = [entry.actor for entry in await list_audit() if entry.verb == "cancel"]
    assert sorted(told) == sorted(roles)


async def test_a_token_is_looked_at_with_every_request(agent: Agent) -> None:
    assert await agent.names()
    del agent.client.headers["authorization"]
    problem_in(await agent.client.post(URL, json={}, headers=HEADERS), 401)


# ---------------------------------------------------------------- failing


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("find_jobs", {"sql": "SELECT 1"}, "sql"),
    ("find_jobs", {"limit": -1}, "limit"),
    ("find_jobs", {"limit": 10**9}, "limit"),
    ("find_jobs", {"limit": "10"}, "limit"),
    ("find_jobs", {"status": "RUNNIG"}, "Did you mean running"),
    ("find_jobs", {"name_like": "\x00"}, "U+0000"),
    ("find_jobs", {"before": "0"}, "before"),
    ("get_job", {}, "job_id"),
    ("get_job", {"job_id": 380467616543174656}, "job_id"),
    ("get_job", {"job_id": "0"}, "job id"),
    ("get_job", {"job_id": "-1"}, "job_id"),
    ("get_job", {"job_id": str(2**63)}, "job id"),
    ("get_job", {"job_id": "1e3"}, "job_id"),
    ("get_job", {"job_id": "0x10"}, "job_id"),
    ("get_job", {"job_id": 1.5}, "job_id"),
    ("list_dead_letters", {"before": "x"}, "before"),
    ("read_task_log", {"task_id": "1", "bytes": 10**9}, "bytes"),
    ("trace_lineage", {"name": "x", "steps": 0}, "steps"),
)


async def test_wrong_arguments_are_named(agent: Agent) -> None:
    for name, given, said in WRONG:
        told = await agent.refused(name, **given)
        assert told["code"] == "InputError", (name, given)
        assert said in told["what"] + told["to_do"]


async def test_all_that_is_wrong_is_listed_and_secrets_are_not_shown(agent: Agent) -> None:
    told = await agent.refused("find_jobs", limit=0, token="swordfish", status=3)
    assert [each["field"] for each in told["errors"]] == ["status", "limit", "token"]
    assert "swordfish" not in str(told)


async def test_harmless_patterns_are_bound(each_agent: Agent) -> None:
    assert await each_agent.ask("find_jobs", name_like="%'; DROP TABLE jobs; --\\") == {"jobs": [], "next": None}


OF_A_JOB = ("get_job", "get_job_stats", "get_job_graph", "list_job_tasks", "list_failed_tasks", "list_job_events")
OF_A_TASK = ("get_task", "list_task_runs", "why_pending", "read_task_log")


async def test_what_is_not_there(each_agent: Agent) -> None:
    asked = [(name, {"job_id": "12345"}) for name in OF_A_JOB] + [(name, {"task_id": "12345"}) for name in OF_A_TASK]
    for name, given in asked:
        told = await each_agent.refused(name, **given)
        assert (told["code"], "12345" in told["what"]) == ("NotFound", True)


async def test_a_fault_of_ours_tells_nothing_of_its_cause(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("swordfish")

    monkeypatch.setattr("aaiclick.orchestration.jobs.list_jobs", broken)
    with caplog.at_level(logging.ERROR):
        told = await agent.refused("find_jobs")
    assert told["code"] == "Fault"
    assert "swordfish" not in str(told)
    assert "swordfish" in caplog.text


async def test_a_database_that_is_away(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: Any, **__: Any) -> None:
        raise BackendUnreachable(url="postgresql://u:***@h/x", cause="it does not answer")

    monkeypatch.setattr("aaiclick.orchestration.jobs.list_jobs", gone)
    assert (await agent.refused("find_jobs"))["code"] == "BackendUnreachable"


async def test_what_takes_too_long_is_given_up(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any, **__: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("aaiclick.orchestration.jobs.list_jobs", never)
    monkeypatch.setattr(endpoint, "READ_S_MAX", 0.01)
    assert (await agent.refused("find_jobs"))["code"] == "TooSlow"


async def test_the_applications_end_is_the_end_of_it(client: Client) -> None:
    client.server.state.mcp_write = True
    async with agents.opened(client.server):
        assert "cancel_job" in await Agent(client).names()
    problem_in(await Agent(client).post("tools/list", {}), 500)


def test_changes_are_allowed_at_start() -> None:
    headers = HEADERS | new_token("operator")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with serving("--mcp-write") as (_, where):
        answer = httpx.post(f"{where}/mcp", json=body, headers=headers, timeout=60)
    assert "cancel_job" in {tool["name"] for tool in answer.json()["result"]["tools"]}
