"""An agent finds out why a job failed, with nothing but the tools: a client of the protocol, a real fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from aaiclick.data import create_object_from_value, data_context, delete_object
from aaiclick.orchestration.access.audit import list_audit
from tests.support.fleet import eventually
from tests.support.local_fleet import LocalFleet, Place, machine

__all__ = ["machine"]


class Agent:
    """Calls tools, and believes what they answer."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, tool: str, **arguments: Any) -> Any:
        found = await self.client.call_tool(tool, arguments)
        assert not found.is_error, found.content
        return found.structured_content["answer"]

    async def until(self, status: str, job_id: str, running: LocalFleet) -> dict[str, Any]:
        async def there() -> bool:
            return bool((await self.ask("get_job", job_id=job_id))["status"] == status)

        await eventually(there, running.explain)
        found: dict[str, Any] = await self.ask("get_job", job_id=job_id)
        return found


async def test_an_agent_debugs_a_failed_job(machine: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_ENTRYPOINT_PREFIXES", "tests.support")
    monkeypatch.setenv("AAICLICK_MCP_WRITE", "1")
    monkeypatch.setenv("AAICLICK_OPLOG", "1")
    running = await machine.start("--port", "0", "--workers", "1").up()
    begins = running.named("begins")[0]
    token = Path(begins["token_file"]).read_text().strip()  # noqa: ASYNC240 (a small file)
    url, headers = begins["server"].replace("/api/v1", "/mcp"), {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        assert {"find_jobs", "submit_job"} <= {tool.name for tool in (await client.list_tools()).tools}
        agent = Agent(client)
        asked = {"name": "daily", "entrypoint": "tests.support.shop.daily_report", "key": "monday"}
        job = await agent.ask("submit_job", **asked)
        await agent.until("failed", job["id"], running)
        await it_finds_out_why(agent)
        await somebody_mends_the_data()
        retried = await agent.ask("retry_job", job_id=job["id"])
        assert len(retried["task_ids"]) == 2
        assert (await agent.until("completed", job["id"], running))["failed_tasks"] == 0
    told = [(entry.verb, entry.outcome) for entry in await list_audit() if entry.actor_id is not None]
    assert told == [("retry", "done"), ("submit", "done")]


async def it_finds_out_why(agent: Agent) -> None:
    (failed,) = (await agent.ask("find_jobs", status="failed"))["jobs"]
    assert "there is an order of -3.25" in failed["error"]
    stats = await agent.ask("get_job_stats", job_id=failed["id"])
    assert stats["by_status"] | {"upstream_failed": 1, "failed": 1} == stats["by_status"]
    (task,) = (await agent.ask("list_failed_tasks", job_id=failed["id"]))["tasks"]
    (run,) = (await agent.ask("list_task_runs", task_id=task["id"]))["runs"]
    assert "in check_orders" in run["traceback"]
    log = await agent.ask("read_task_log", task_id=task["id"])
    assert "checking what is left of 5 orders" in log["text"]
    (doomed,) = (await agent.ask("list_job_tasks", job_id=failed["id"], status="upstream_failed"))["tasks"]
    assert doomed["name"] == "report"
    assert (await agent.ask("why_pending", task_id=doomed["id"]))["status"] == "upstream_failed"
    assert (await agent.ask("list_objects", contains="order"))["objects"] == ["orders", "paid_orders"]
    bad = {"where": [{"column": "amount", "operator": "<", "value": 0}]}
    assert (await agent.ask("query_object", name="paid_orders", **bad))["rows"] == [[4, -3.25]]
    made = await agent.ask("trace_lineage", name="paid_orders")
    maker = await agent.ask("get_task", task_id=made["operations"][-1]["task_id"])
    assert (maker["name"], maker["job_id"]) == ("load_orders", failed["id"])


async def somebody_mends_the_data() -> None:
    async with data_context():
        await delete_object("paid_orders")
        await create_object_from_value({"number": [1, 2, 5], "amount": [10.0, 25.5, 40.0]}, name="paid_orders")
