"""A replica through a real socket: what it answers, passes on and refuses, and what it says of its age."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from aaiclick.orchestration.connections import coordinated
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.roles import Role
from aaiclick.orchestration.store.reading.event_feed import newest as newest_event
from aaiclick.server.openapi import document
from aaiclick.server.replicas import doors
from aaiclick.server.replicas.passing import is_elsewhere
from tests.support.front_door import local
from tests.support.node_server import NodeServer, node_server
from tests.support.orchestra import done, failure, make, until
from tests.support.replica_server import ReplicaServer, replica_server

__all__ = ["local"]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, an event that comes is waited for."""
    monkeypatch.setattr(doors, "MIN_SEQ_S_MAX", 60.0)


@pytest.fixture
async def server(migrated_sql_url: str) -> AsyncIterator[NodeServer]:
    async with node_server(migrated_sql_url, *Role) as opened:
        yield opened


@pytest.fixture
async def replica(server: NodeServer, tmp_path: Path) -> AsyncIterator[ReplicaServer]:
    async with replica_server(server, tmp_path / "replica.db") as opened:
        yield opened


async def submitted(*names: str) -> Job:
    job = new_job("job")
    submission = gather(job.id, [make(name) for name in names])
    submission.new_job = job
    async with coordinated() as there:
        return await there.submit(submission)


async def worked() -> dict[str, str]:
    """A job whose first task completed and whose second failed; return the values of paths."""
    job = await submitted("good", "bad")
    async with coordinated() as there:
        node = NodeDescription("here")
        worker = await there.register(hostname="here", pid=1, name="w", concurrency=2, node=node)
        good, bad = await there.claim(worker.id, limit=2)
        await there.report(worker.id, [done(good), failure(bad)])
    task = str(bad.task_id)
    ids = {"job_id": str(job.id), "task_id": task, "worker_id": str(worker.id), "backfill_id": "1"}
    return {**ids, "name": "here", "kind": "job", "ending": str(job.id), "token": "x" * 43}


async def newest(server: NodeServer) -> int:
    async with coordinated() as there:
        return await there.database.read(newest_event)


def routes(app: Any) -> list[tuple[str, str]]:
    """All routes of the document, as (method, path)."""
    return [(method.upper(), path) for path, verbs in document(app)["paths"].items() for method in verbs]


OWN = {"/healthz", "/readyz", "/metrics", "/api/v1/health", "/api/v1/events/stream"}
"""What a replica says of itself, and what does not end."""


async def test_every_route_that_reads_answers_as_the_coordinator_does(
    server: NodeServer, replica: ReplicaServer
) -> None:
    values = await worked()
    seq = await newest(server)
    assert await replica.progress.reaches(seq, 60)
    tried = 0
    async with httpx.AsyncClient(timeout=60) as client:
        for method, path in routes(server.app):
            if method != "GET" or path in OWN:
                continue
            path, tried = path.format_map(values), tried + 1
            headers = {"Authorization": f"Bearer {server.tokens['admin']}"}
            theirs = await client.get(f"{server.url}{path}", headers=headers)
            ours = await client.get(f"{replica.url}{path}", headers=headers, params={"min_seq": seq})
            assert ours.status_code == theirs.status_code, (path, ours.text)
            if not path.startswith(("/api/v1/workers", "/api/v1/nodes", "/api/v1/audit")):
                assert ours.content == theirs.content, path
            is_passed = "aaiclick-as-of-seq" not in ours.headers
            assert is_passed == bool(is_elsewhere({"path": path, "query_string": b""})), path
    assert tried > 25


async def test_every_route_that_changes_something_is_refused_with_the_coordinators_address(
    server: NodeServer, replica: ReplicaServer
) -> None:
    values = await worked()
    tried = 0
    for method, path in [*routes(server.app), ("POST", "/api/v1/node/beat"), ("POST", "/mcp")]:
        if method == "GET" or path.endswith("/query"):
            continue
        answer = await replica.ask(method, path.format_map(values), "admin", json={})
        assert answer.status_code == 421, (method, path, answer.text)
        told = answer.json()
        assert (told["code"], told["facts"]["coordinator"]) == ("read_only_replica", server.url)
        assert server.url in told["detail"]
        tried += 1
    assert tried > 20


async def test_a_query_of_an_object_is_passed_on_though_it_is_sent_with_post(replica: ReplicaServer) -> None:
    answer = await replica.ask("POST", "/api/v1/objects/none/query", json={})
    assert answer.status_code == 404
    assert answer.json()["code"] == "object_not_found"


async def test_a_log_is_passed_back_with_what_is_said_of_it(server: NodeServer, replica: ReplicaServer) -> None:
    values = await worked()
    assert await replica.progress.reaches(await newest(server), 60)
    answer = await replica.get(f"/tasks/{values['task_id']}/logs")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_each_answer_says_up_to_which_event_it_is_and_how_old(server: NodeServer, replica: ReplicaServer) -> None:
    await submitted("a")
    seq = await newest(server)
    answer = await replica.get("/jobs", params={"min_seq": seq})
    assert int(answer.headers["aaiclick-as-of-seq"]) >= seq
    assert int(answer.headers["aaiclick-lag-ms"]) >= 0
    same = await replica.get("/jobs", headers={"If-None-Match": answer.headers["etag"]})
    assert same.status_code == 304
    assert "aaiclick-lag-ms" in same.headers
    health = (await replica.get("/health")).json()
    assert health["ok"]
    assert int(health["replica"]["as_of_seq"]) >= seq
    assert health["replica"]["coordinator"] == server.url
    assert [check["name"] for check in health["checks"]] == ["replica", "coordinator"]
    assert "aaiclick_replica_as_of_seq" in (await replica.ask("GET", "/metrics")).text


async def test_an_event_is_waited_for(server: NodeServer, replica: ReplicaServer) -> None:
    seq = await newest(server) + 1
    asking = asyncio.create_task(replica.get("/jobs", params={"min_seq": seq, "limit": 10}))
    await asyncio.sleep(0)
    job = await submitted("a")
    answer = await asking
    assert [each["id"] for each in answer.json()["jobs"]] == [str(job.id)]


async def test_an_event_that_does_not_come_is_answered_with_412(
    server: NodeServer, replica: ReplicaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "MIN_SEQ_S_MAX", 0.01)
    answer = await replica.get("/jobs", params={"min_seq": 10**9})
    assert (answer.status_code, answer.json()["code"]) == (412, "not_yet_here")
    assert answer.json()["facts"]["min_seq"] == str(10**9)
    for wrong in ("x", "-1", "1.5", str(2**63)):
        assert (await replica.get("/jobs", params={"min_seq": wrong})).status_code == 422


async def test_a_coordinator_tells_writers_what_to_ask_a_replica_for(
    server: NodeServer, replica: ReplicaServer
) -> None:
    job = await submitted("a")
    headers = {"Authorization": f"Bearer {server.tokens['admin']}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as client:
        cancelled = await client.post(f"/api/v1/jobs/{job.id}/cancel")
        seq = cancelled.headers["aaiclick-as-of-seq"]
        there = await client.get("/api/v1/jobs", params={"min_seq": seq})
        beyond = await client.get("/api/v1/jobs", params={"min_seq": int(seq) + 1})
    assert (there.status_code, beyond.status_code) == (200, 412)
    read = await replica.get(f"/jobs/{job.id}", params={"min_seq": seq})
    assert read.json()["status"] == "cancelled"


async def test_events_are_streamed_from_the_copy(server: NodeServer, replica: ReplicaServer) -> None:
    seq = await newest(server)
    job = await submitted("a")
    headers = {"Authorization": f"Bearer {server.tokens['viewer']}", "Last-Event-ID": str(seq)}
    async with (
        httpx.AsyncClient(base_url=replica.url, timeout=60) as client,
        client.stream("GET", "/api/v1/events/stream", headers=headers) as answer,
    ):
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                assert str(job.id) in line
                break


async def test_while_the_first_copy_is_not_complete_only_health_is_answered(
    server: NodeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("aaiclick.server.replicas.feeder.Feeder.compare_all", never)
    async with replica_server(server, tmp_path / "replica.db", wait=False) as replica:
        answer = await replica.get("/jobs")
        assert (answer.status_code, answer.json()["code"]) == (503, "replica_not_ready")
        assert (await replica.ask("GET", "/readyz")).status_code == 503
        health = (await replica.get("/health")).json()
        assert (health["ok"], health["replica"]["is_whole"], health["replica"]["lag_ms"]) == (False, False, None)


async def test_a_replica_answers_while_its_coordinator_is_away(migrated_sql_url: str, tmp_path: Path) -> None:
    async with (
        node_server(migrated_sql_url, *Role) as server,
        replica_server(server, tmp_path / "replica.db") as replica,
    ):
        job = await submitted("a")
        await replica.get("/jobs", params={"min_seq": await newest(server)})
        kept = server.app.state.node
        server.app.state.node = _Broken()  # the road for replicas ends in a fault
        await until(lambda: _truth(bool(replica.progress.trouble)))
        found = await replica.get("/jobs")
        assert [each["id"] for each in found.json()["jobs"]] == [str(job.id)]
        assert not (await replica.get("/health")).json()["ok"]
        unknown = await replica.get("/jobs", "operator")
        assert (unknown.status_code, unknown.json()["code"]) == (503, "coordinator_away")
        server.app.state.node = kept
        again = await submitted("b")
        seen = await replica.get("/jobs", params={"min_seq": await newest(server)})
        assert [each["id"] for each in seen.json()["jobs"]] == [str(again.id), str(job.id)]


async def _truth(found: bool) -> bool:
    return found


class _Broken:
    """A road that nobody answers on."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"0")]})
        await send({"type": "http.response.body", "body": b"{}"})
