"""The client by the name of the design, against a real server."""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.distributed import APIClient
from tests.distributed.conftest import submitted
from tests.support.front_door import local
from tests.support.web_server import web_server

__all__ = ["local"]


@pytest.mark.usefixtures("local")
def test_tasks_are_listed_as_printed() -> None:
    mine = asyncio.run(submitted(2))

    async def ask(url: str, token: str) -> None:
        client = APIClient(coordinator_url=url, token=token)
        tasks = await client.list_tasks()  # as printed, but for a replica's address
        assert sorted(task["id"] for task in tasks["tasks"]) == sorted(mine)
        assert {task["idempotency_key"] for task in tasks["tasks"]} == {f"{task_id}-0" for task_id in mine}
        assert (await client.list_tasks(status="completed"))["tasks"] == []
        await client.aclose()

    with web_server() as server:
        asyncio.run(ask(server.url, server.token))
