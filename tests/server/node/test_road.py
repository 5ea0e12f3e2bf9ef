"""The road of workers through a real socket: who may go it, in which version, and what is lost on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import httpx
import msgspec
import pytest

from aaiclick import __version__
from aaiclick.errors import Conflict, NotAllowed, NotAuthenticated, ProtocolRefused, SessionOver
from aaiclick.ids import new_id
from aaiclick.orchestration.access.tokens import create_token, revoke_token
from aaiclick.orchestration.connections import coordinated
from aaiclick.orchestration.coordinator.http import calls
from aaiclick.orchestration.coordinator.http.client import HttpCoordinator
from aaiclick.orchestration.coordinator.http.protocol import JSON, MSGPACK, PACKED_FROM, VERSION_HEADER, SentJob, Submit
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.models.sent_submission import SentSubmission
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.naming.hints import READY
from aaiclick.orchestration.rules.roles import Role
from aaiclick.server.node import node_tokens
from aaiclick.server.node.verbs import VERBS
from tests.support.front_door import local
from tests.support.node_server import NodeServer, any_run_may, node_server
from tests.support.orchestra import done, make, until

__all__ = ["local"]

FACTS: dict[str, Any] = {"hostname": "here", "pid": 1}


@pytest.fixture
async def server(migrated_sql_url: str) -> AsyncIterator[NodeServer]:
    async with node_server(migrated_sql_url, *Role) as opened:
        yield opened


@pytest.fixture
async def worker(server: NodeServer) -> AsyncIterator[HttpCoordinator]:
    coordinator = server.coordinator()
    await coordinator.grant_ids()
    yield coordinator
    coordinator.close()


sqlite = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


def graph(*names: str) -> Submission:
    job = new_job("job")
    submission = gather(job.id, [make(name) for name in names])
    submission.new_job = job
    return submission


async def submitted(*names: str) -> Job:
    async with coordinated() as there:
        return await there.submit(graph(*names))


async def until_held(server: NodeServer, number: int) -> None:
    await until(lambda: _truth(len(server.app.state.node.desk.held) == number))


async def _truth(found: bool) -> bool:
    return found


async def post(server: NodeServer, verb: str, body: bytes = b"{}", role: str = "worker", **headers: str) -> Any:
    async with httpx.AsyncClient(base_url=server.url) as client:
        return await sent(client, server, verb, body, role, **headers)


async def sent(
    client: httpx.AsyncClient, server: NodeServer, verb: str, body: bytes, role: str, **headers: str
) -> httpx.Response:
    given = {"content-type": JSON, VERSION_HEADER: "1", "authorization": f"Bearer {server.tokens[role]}"} | headers
    return await client.post(f"/api/v1/node/{verb}", content=body, headers=given)


# ---------------------------------------------------------------- what is refused


@sqlite
@pytest.mark.parametrize("said", ["", "0", "2", "one", "-1", "9" * 50])
async def test_another_version_is_refused_with_what_to_install(server: NodeServer, said: str) -> None:
    answer = await post(server, "slots", b"{}", "worker", **{VERSION_HEADER: said})
    assert answer.status_code == 426
    assert answer.headers[VERSION_HEADER] == "1-1"
    assert answer.headers["upgrade"] == "aaiclick-node"
    assert f"Install aaiclick {__version__} on the worker's machine" in answer.json()["detail"]


@sqlite
async def test_a_worker_of_another_version_is_told(
    server: NodeServer, worker: HttpCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "VERSION", 2)
    with pytest.raises(ProtocolRefused, match="or a newer one on the server"):
        await worker.slots()


ALLOWED = {role: {name for name, verb in VERBS.items() if verb.role is None or role.may(verb.role)} for role in Role}
ALLOWED[Role.WORKER] |= {name for name, verb in VERBS.items() if verb.for_runs}
READING = {"who", "job", "result_of"}


@sqlite
async def test_each_verb_is_for_its_roles(server: NodeServer) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        for role, verb in product(Role, VERBS):
            answer = await sent(client, server, verb, b"not JSON", role)
            assert answer.status_code == (422 if verb in ALLOWED[role] else 403), (role, verb)
    assert (ALLOWED[Role.VIEWER], ALLOWED[Role.JOIN]) == (READING, {"who", "join"})
    assert ALLOWED[Role.AUTHOR] == ALLOWED[Role.ADMIN] == READING, "what they submit is checked, and goes over REST"
    assert ALLOWED[Role.REPLICA] == {"who", "replica_start", "replica_page", "replica_changes", "replica_workers"}


@sqlite
async def test_who_has_no_token_gets_nowhere(server: NodeServer) -> None:
    for token in ("", "Bearer x", "Bearer aai_1_" + "x" * 43):
        answer = await post(server, "claim", authorization=token)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    with pytest.raises(NotAuthenticated, match="not a token of this server"):
        await server.coordinator(token="aai_1_" + "x" * 43).slots()
    with pytest.raises(NotAllowed, match="role worker"):
        await server.coordinator("viewer").slots()


@sqlite
async def test_a_revoked_token_is_refused_within_a_second(server: NodeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await create_token("stolen", "worker")
    thief = server.coordinator(token=made.text)
    await thief.slots()
    await revoke_token(made.token.id)
    monkeypatch.setattr(node_tokens, "TRUSTED_S", 0.0)  # the second has passed
    with pytest.raises(NotAuthenticated, match="revoked"):
        await thief.slots()
    thief.close()


@sqlite
async def test_what_is_no_call_is_refused_with_its_fault(server: NodeServer) -> None:
    assert (await post(server, "nothing")).status_code == 404
    assert (await post(server, "claim", b'{"worker": 1}')).json()["error"] == "InputError"
    assert (await post(server, "claim", b"x", **{"content-encoding": "gzip"})).status_code == 422
    async with httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.get("/api/v1/node/claim", headers={"authorization": f"Bearer {server.tokens['worker']}"})
        assert answer.status_code == 405
        strange = await client.post("/api/v1/node/claim", headers={"host": "elsewhere.example"})
        assert strange.status_code == 403


@sqlite
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
async def test_numbers_that_no_database_holds_are_no_fault_of_ours(server: NodeServer, number: int) -> None:
    me = json.loads((await post(server, "register", json.dumps({"worker": 7, **FACTS}).encode())).content)["id"]
    asked = [
        ("register", {"worker": number, **FACTS}),
        ("beat", {"worker": number}),
        ("beat", {"worker": me, "completed": number}),
        ("beat", {"worker": me, "held": [{"task_id": number, "epoch": 1}]}),
        ("claim", {"worker": me, "limit": 1, "call": number}),
        ("release", {"worker": me, "runs": [[number, 1]]}),
        ("hold", {"worker": me, "task_id": number, "epoch": 1, "tables": ["t"]}),
        ("reconcile", {"job_id": number}),
        ("report", {"worker": me, "failed": [{"task_id": number, "epoch": 1, "error": "E"}]}),
    ]
    for verb, body in asked:
        answer = await post(server, verb, json.dumps(body).encode())
        assert answer.status_code in (200, 403, 409, 422), (verb, body, answer.text)


# ---------------------------------------------------------------- forms


@sqlite
async def test_a_person_can_read_it(server: NodeServer) -> None:
    answer = await post(server, "register", json.dumps({"worker": 7, **FACTS}).encode())
    assert answer.headers["content-type"] == JSON
    assert (answer.json()["id"], answer.json()["status"]) == (7, "active")
    packed = await post(server, "slots", accept=MSGPACK)
    assert msgspec.msgpack.decode(packed.content) == 1


@sqlite
async def test_long_bodies_are_compressed_both_ways(server: NodeServer, worker: HttpCoordinator) -> None:
    text = "again and again " * 1000
    assert len(text) > PACKED_FROM
    me = (await worker.register(**FACTS)).id
    await submitted("first")
    (claim,) = await worker.claim(me, limit=1)
    assert (await worker.report(me, [done(claim, json.dumps(text))])).accepted
    async with coordinated() as there:
        job = await there.job(claim.job_id)
    assert job is not None
    assert job.status == "completed"


# ---------------------------------------------------------------- what is lost and repeated


async def test_a_repeated_registration_is_the_same_worker(server: NodeServer, worker: HttpCoordinator) -> None:
    made = new_id()
    both = await asyncio.gather(*(worker.register(**FACTS, worker_id=made) for _ in range(2)))
    assert both[0] == both[1] == await worker.register(**FACTS, worker_id=made)
    with pytest.raises(Conflict, match="another one"):
        await worker.register(hostname="elsewhere", pid=1, worker_id=made)
    await worker.deregister(made)
    with pytest.raises(Conflict, match="is over"):
        await worker.register(**FACTS, worker_id=made)


async def test_claims_whose_answer_was_lost_are_found_by_the_number_of_their_call(
    server: NodeServer, worker: HttpCoordinator
) -> None:
    me = (await worker.register(**FACTS)).id
    await submitted("a", "b", "c")
    lost = await worker.claim(me, limit=2, call=5)
    found = await worker.claim(me, limit=2, call=5, again=True)
    assert [(claim.name, claim.epoch) for claim in found] == [(claim.name, claim.epoch) for claim in lost]
    assert [claim.name for claim in await worker.claim(me, limit=2, call=6, again=True)] == ["c"]
    assert await worker.claim(me, limit=2, call=7, again=True) == []


async def test_a_repeated_submission_is_stored_once(server: NodeServer) -> None:
    any_run_may(server)
    body = server.front_door()
    submission = graph("a", "b")
    first = await body.submit(submission)
    with pytest.raises(Conflict):
        await body.submit(submission)
    again = await body.calls.ask("submit", _again(submission), SentJob)
    assert (again.id, again.total_tasks) == (first.id, 2)
    more = gather(first.id, [make("c")])
    for _ in range(2):
        assert (await body.calls.ask("submit", _again(more), SentJob)).total_tasks == 3
    body.calls.close()


def _again(submission: Submission) -> Submit:
    return Submit(graph=SentSubmission.of(submission), again=True)


async def test_the_errors_of_the_state_come_over(server: NodeServer, worker: HttpCoordinator) -> None:
    with pytest.raises(SessionOver) as over:
        await worker.claim(12345, limit=1)
    assert over.value.swept is True
    assert over.value.worker_id == 12345


# ---------------------------------------------------------------- what is held


async def test_a_claim_is_held_until_a_task_is_there(server: NodeServer, worker: HttpCoordinator) -> None:
    me = (await worker.register(**FACTS)).id
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(worker.claim(me, limit=5, wait_s=20))
        await until_held(server, 1)
        await submitted("a")
        claims = await waiting
        while not claims:
            claims = await worker.claim(me, limit=5, wait_s=20)
    assert [claim.name for claim in claims] == ["a"]


@sqlite
async def test_a_held_claim_brings_hints_too(server: NodeServer, worker: HttpCoordinator) -> None:
    me = (await worker.register(**FACTS)).id
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(worker.claim(me, limit=1, wait_s=20))
        await until_held(server, 1)
        hearing = asyncio.create_task(worker.wait_for_hints(30))
        await submitted("a")
        assert await waiting
        assert READY in await hearing


@sqlite
async def test_whoever_hangs_up_is_held_no_longer(server: NodeServer, worker: HttpCoordinator) -> None:
    me = (await worker.register(**FACTS)).id
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(worker.claim(me, limit=1, wait_s=20))
        await until_held(server, 1)
        waiting.cancel()
        await until_held(server, 0)
    await submitted("a")
    assert len(await worker.claim(me, limit=1)) == 1


@sqlite
async def test_a_server_that_ends_lets_go_of_whom_it_holds(migrated_sql_url: str) -> None:
    async with asyncio.timeout(60):
        async with node_server(migrated_sql_url) as server:
            worker = server.coordinator()
            me = (await worker.register(**FACTS, worker_id=new_id())).id
            waiting = asyncio.create_task(worker.claim(me, limit=1, wait_s=20))
            await until_held(server, 1)
        assert await waiting == []
        worker.close()
