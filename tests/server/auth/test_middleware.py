"""The door: tokens, hosts, origins, sizes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from sqlalchemy import update

from aaiclick.config import reset_settings
from aaiclick.orchestration.access.tokens import create_token, list_tokens, revoke_token
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.store.definitions.access_tables import tokens
from aaiclick.server.app import create_app
from aaiclick.server.routes import jobs as room
from aaiclick.telemetry.log_lines import TextLines
from tests.server.conftest import Client, problem_in
from tests.support.orchestra import LONG_AGO


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer x", "Basic YTpi", "bearer aai_1_x", "Bearer aai_1_" + "a" * 43]
)
async def test_without_a_token_that_counts_nobody_comes_in(client: Client, given: str | None) -> None:
    del client.headers["authorization"]
    answer = await client.get("/jobs", headers={} if given is None else {"Authorization": given})
    assert "token" in problem_in(answer, 401)["detail"]
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_a_path_that_is_not_there_tells_nothing_without_a_token(client: Client) -> None:
    problem_in(await client.get("/nothing"), 404)
    problem_in(await client.put("/jobs"), 405)
    del client.headers["authorization"]
    problem_in(await client.get("/nothing"), 401)
    problem_in(await client.get("/openapi.json"), 401)


async def test_an_expired_and_a_revoked_token(each_client: Client) -> None:
    made = await create_token("leaver", "admin")
    headers = {"Authorization": f"Bearer {made.text}"}
    assert (await each_client.get("/jobs", headers=headers)).status_code == 200
    await revoke_token(made.token.id)
    assert "revoked" in problem_in(await each_client.get("/jobs", headers=headers), 401)["detail"]
    async with connected() as database:
        await database.transact(lambda session: session.run(update(tokens).values(expires_at=LONG_AGO)))
    assert "expired" in problem_in(await each_client.get("/jobs"), 401)["detail"]


@pytest.mark.parametrize(
    ("role", "method", "path", "status"),
    [
        ("viewer", "GET", "/jobs", 200),
        ("viewer", "POST", "/jobs/12345/cancel", 403),
        ("viewer", "POST", "/workers/12345/drain", 403),
        ("operator", "POST", "/jobs/12345/cancel", 404),
        ("operator", "POST", "/jobs", 403),
        ("operator", "PUT", "/registered-jobs/x", 403),
        ("author", "POST", "/jobs/12345/cancel", 404),
        ("author", "GET", "/audit", 403),
        ("admin", "GET", "/audit", 200),
    ],
)
async def test_each_role_may_do_its_part(client: Client, role: str, method: str, path: str, status: int) -> None:
    body = {"name": "x", "entrypoint": "tests.x"} if path == "/jobs" else {"entrypoint": "tests.x"}
    given = body if method != "GET" and "12345" not in path else None
    answer = await client.request(method, path, json=given, headers=client.of(role))
    assert answer.status_code == status
    if status == 403:
        assert role in problem_in(answer, 403)["detail"]


async def test_two_names_are_none(client: Client) -> None:
    """Whoever stands between may have looked at the other one."""
    for hosts in (("localhost", "evil.example"), ("localhost", "localhost")):
        headers = [("Host", host) for host in hosts]
        problem_in(await client.get("/jobs", headers=headers), 403)


async def test_an_origin_that_cannot_be_read_is_foreign(client: Client) -> None:
    for origins in (("http://[",), ("http://]",), ("",), ("http://localhost:8765", "http://evil.example")):
        headers = [("Origin", origin) for origin in origins]
        problem_in(await client.get("/jobs", headers=headers), 403)


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8765", "", "127.0.0.1.nip.io"]
)
async def test_a_foreign_host_is_refused(client: Client, host: str) -> None:
    """A page of evil.example that lets its own name point here (DNS rebinding)."""
    problem_in(await client.get("/jobs", headers={"Host": host}), 403)


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "LOCALHOST:8765", "127.0.0.1:99", "[::1]:8765"])
async def test_this_machine_is_known(client: Client, host: str) -> None:
    assert (await client.get("/jobs", headers={"Host": host})).status_code == 200


async def test_more_hosts_can_be_set(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    monkeypatch.setenv("AAICLICK_SERVER_HOSTS", "flows.example, other.example:8443")
    reset_settings()
    app = create_app()
    known = {"flows.example": 200, "flows.example:1": 200, "other.example:8443": 200, "other.example": 403}
    asking = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://x/api/v1", headers=client.of("viewer")
    )
    async with app.router.lifespan_context(app), asking as other:
        for host, status in known.items():
            assert (await other.get("/jobs", headers={"Host": host})).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Origin": "http://localhost:8765.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_foreign_page_is_refused(client: Client, headers: dict[str, str]) -> None:
    problem_in(await client.post("/jobs/12345/cancel", headers=headers), 403)


async def test_our_own_page_may_ask_and_nobody_else_is_told_that_they_may(client: Client) -> None:
    answer = await client.get("/jobs", headers={"Origin": "http://localhost:8765", "Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    asked = await client.options("/jobs", headers={"Access-Control-Request-Method": "POST"})
    problem_in(asked, 405)
    assert not [name for name in asked.headers if name.startswith("access-control")]


async def test_a_body_that_is_announced_too_large_is_not_read(client: Client) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("it was read")
        yield b""

    answer = await client.post("/jobs", content=never(), headers={"Content-Length": str(10**9)})
    problem_in(answer, 413)


async def test_a_body_that_grows_too_large_is_refused(client: Client) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b" " * 100_000

    problem_in(await client.post("/jobs", content=endless()), 413)
    assert sent < 100


@pytest.mark.parametrize("path", ["/jobs", "/registered-jobs", "/events/stream", "/jobs/1", "/nowhere"])
async def test_head_is_answered_as_get_without_the_body(client: Client, path: str) -> None:
    client.server.state.streams.ending.set()  # streams end at once
    head, whole = await client.head(path), await client.get(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers.get("content-length") == whole.headers.get("content-length")
    assert (await client.head("http://localhost:8765/healthz")).status_code == 200
    assert (await client.head(path, headers={"Authorization": ""})).status_code == 401


async def test_every_answer_forbids_guessing_its_kind(client: Client) -> None:
    for answer in (await client.get("/jobs"), await client.get("/nothing")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"


async def test_a_fault_of_ours_is_told_without_its_cause(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the inside of the server")

    monkeypatch.setattr(room, "list_jobs", broken)
    with caplog.at_level(logging.ERROR, "aaiclick.server"):
        problem = problem_in(await client.get("/jobs"), 500)
    assert "inside" not in str(problem)
    assert "the inside of the server" in caplog.text


async def test_what_was_asked_for_makes_no_lines_of_its_own_in_the_log(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("aaiclick.server.routes.registered_jobs.the_entry", broken)
    problem_in(await client.get("/registered-jobs/x%0aERROR all is lost%1b[2J"), 500)
    told = TextLines("%(message)s").format(next(each for each in caplog.records if "failed" in each.getMessage()))
    assert told.splitlines()[0].startswith("GET /api/v1/registered-jobs/x\\x0aERROR all is lost\\x1b[2J failed")
    assert "\x1b" not in told.splitlines()[0]


async def test_the_token_is_in_no_log_and_no_problem(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    secret = client.tokens["viewer"].split("_", 2)[2]
    with caplog.at_level(logging.DEBUG):
        answer = await client.post("/jobs", json={"name": "x"}, headers=client.of("viewer"))
    assert secret not in answer.text
    assert secret not in caplog.text
    assert secret not in str(await list_tokens())
