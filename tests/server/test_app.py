"""The application as a whole."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import BackendUnreachable
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution import id_supply
from aaiclick.server.app import create_app
from tests.orchestration import sample_flows as flows
from tests.server.conftest import Client, problem_in


async def test_many_ask_at_once(each_client: Client) -> None:
    body = {"name": "x", "entrypoint": f"{flows.__name__}.add", "kwargs": {"a": 1, "b": 2}, "key": "once"}
    answers = await asyncio.gather(*(each_client.post("/jobs", json=body) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] * 9 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_the_right_to_make_ids_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a server that runs for minutes would make ids that another process makes, too."""
    monkeypatch.setattr(id_supply, "EVERY_S", 0.001)
    asked: asyncio.Queue[object] = asyncio.Queue()

    async def failing_second(coordinator: object) -> None:
        asked.put_nowait(coordinator)
        if asked.qsize() == 2:  # the first is asked for by whoever connects
            raise OSError("away")

    monkeypatch.setattr(DirectCoordinator, "grant_ids", failing_second)
    app = create_app()
    async with app.router.lifespan_context(app):
        while asked.qsize() < 4:  # noqa: ASYNC110 (it counts)
            await asyncio.sleep(0.001)


async def test_there_is_no_page_that_loads_code_of_others(client: Client) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        problem_in(await client.get(f"http://localhost:8765{path}"), 404)


async def test_without_a_database_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_SQL_URL", "postgresql://u:hush@127.0.0.1:1/x")
    reset_settings()
    app = create_app()
    with pytest.raises(BackendUnreachable) as refused:
        async with app.router.lifespan_context(app):
            pass
    assert "hush" not in str(refused.value)


async def test_a_database_that_has_gone_is_told_as_such(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(*_: object, **__: object) -> None:
        raise BackendUnreachable(url="postgresql://u:***@h/x", cause="it does not answer")

    monkeypatch.setattr("aaiclick.server.routes.jobs.list_jobs", gone)
    answer = await client.get("/jobs")
    problem_in(answer, 503)
    assert answer.headers["retry-after"]


async def test_a_web_socket_is_not_opened(client: Client) -> None:
    sent = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    await client.server({"type": "websocket", "path": "/", "headers": [], "state": {}}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert isinstance(client, httpx.AsyncClient)
