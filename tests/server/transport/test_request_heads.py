"""What a request begins with, and that the work it makes does not grow faster than it does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.server import request_models
from aaiclick.server.mcp import arguments
from aaiclick.server.mcp.catalogue import tools
from aaiclick.server.request_models import MEMBERS_MAX
from aaiclick.server.transport import request_heads
from tests.server.conftest import FLOWS, Client, problem_in
from tests.support.operations import Operations

Asked = tuple[str, str, dict[str, str], bytes]
"""Method, address, headers, body."""

JSON = {"content-type": "application/json"}
MCP = "/mcp"
AGENT = JSON | {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


def posted(path: str, body: Any) -> Asked:
    return "POST", f"/api/v1{path}", JSON, body if isinstance(body, bytes) else json.dumps(body).encode()


def called(tool: str, given: Any) -> Asked:
    params = {"name": tool, "arguments": given}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return "POST", MCP, AGENT, json.dumps(body).encode()


def got(address: str, **headers: str) -> Asked:
    return "GET", f"/api/v1{address}", {name.replace("_", "-"): value for name, value in headers.items()}, b""


def many(number: int) -> dict[str, int]:
    return {f"a{each}": 1 for each in range(number)}


async def asks(client: Client, asked: Asked) -> tuple[int, bytes]:
    """As the application is asked: no client of HTTP, whose own work would be counted."""
    method, address, headers, body = asked
    path, _, query = address.partition("?")
    given = {"host": "localhost", "authorization": f"Bearer {client.tokens['admin']}", **headers}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }
    coming: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
    told: list[Any] = []

    async def receive() -> Any:
        return coming.pop() if coming else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)

    await client.server(scope, receive, send)
    return told[0]["status"], b"".join(each.get("body", b"") for each in told)


GROWING: dict[str, Callable[[int], Asked]] = {
    "parameters": lambda n: got("/jobs?" + "&".join(f"a{each}=" for each in range(n))),
    "parameters where none is taken": lambda n: got("/workers/5?" + "&".join(f"a{each}=" for each in range(n))),
    "the same parameter": lambda n: got("/jobs?" + "a=&" * n),
    "a long parameter": lambda n: got("/jobs?status=" + "a" * n),
    "a long name": lambda n: got("/jobs?" + "token" * n),
    "a long path": lambda n: got("/registered-jobs/" + "x" * n),
    "a deep path": lambda n: got("/x" * n),
    "a long id": lambda n: got("/jobs/" + "1" * n),
    "headers": lambda n: got("/jobs", **{f"x{each}": "" for each in range(n)}),
    "cookies": lambda n: got("/jobs", cookie="a=b; " * n),
    "tags": lambda n: got("/jobs", if_none_match='"a",' * n),
    "kinds": lambda n: ("POST", MCP, AGENT | {"accept": "a/b;q=0.1," * n}, b"{}"),
    "an event": lambda n: got("/events/stream", last_event_id="1" * n),
    "a token": lambda n: got("/jobs", authorization="Bearer " + "aai_1_" * n),
    "members": lambda n: posted("/jobs", many(n)),
    "members of members": lambda n: posted("/objects/x/query", {"where": [many(n)]}),
    "wrong columns": lambda n: posted("/objects/x/query", {"columns": [1] * n}),
    "conditions": lambda n: posted("/objects/x/query", {"where": [{"column": "a", "value": 1}] * n}),
    "arguments": lambda n: posted("/jobs", {"name": "x", "entrypoint": f"{FLOWS}.add", "kwargs": many(n)}),
    "a list": lambda n: posted("/jobs", [1] * n),
    "depth": lambda n: posted("/jobs", b'{"kwargs": {"a": ' + b"[" * n + b"]" * n + b"}}"),
    "digits": lambda n: posted("/jobs", b'{"priority": ' + b"1" * n + b"}"),
    "secrets": lambda n: posted("/jobs", {"name": "token = " * n, "entrypoint": "x"}),
    "a schedule": lambda n: posted("/jobs", {"name": "x", "entrypoint": "x." * n}),
    "an agent's members": lambda n: called("find_jobs", many(n)),
    "an agent's text": lambda n: called("find_jobs", {"status": "x" * n}),
    "an agent's depth": lambda n: called(
        "submit_job", {"name": "x", "entrypoint": "x", "kwargs": {"a": [[1] * n] * 9}}
    ),
    "a batch": lambda n: ("POST", MCP, AGENT, b"[" + b'{"jsonrpc":"2.0","id":1,"method":"ping"},' * n + b"1]"),
}


@pytest.mark.parametrize("name", GROWING)
async def test_work_grows_no_faster_than_what_is_asked(client: Client, name: str) -> None:
    """Four times as much is at most so much more work: 16 times would be the square of it."""
    make = GROWING[name]
    await asks(client, make(40))  # what is loaded at the first time is not counted
    few, lots = [await Operations().of(lambda n=n: asks(client, make(n))) for n in (2_000, 8_000)]  # type: ignore[misc]
    assert lots < 6 * few
    status, body = await asks(client, make(8_000))
    assert status < 500
    assert len(body) < 20_000  # nobody is answered with all that they sent


@pytest.mark.parametrize("depth", [50, 150, 300, 600, 900, 990, 5_000])
async def test_however_deep_it_is_no_fault_of_ours(client: Client, depth: int) -> None:
    deep = json.loads("[" * min(depth, 900) + "]" * min(depth, 900))
    body = b'{"name": "x", "entrypoint": "%s.add", "kwargs": {"b": 1, "a": ' % FLOWS.encode()
    for kind in (b"[]", (b'{"a":', b"}")):
        begin, end = (kind[:1], kind[1:]) if isinstance(kind, bytes) else kind
        value = begin * depth + (b"1" if begin != b"[" else b"") + end * depth
        status, told = await asks(client, posted("/jobs", body + value + b"}}"))
        assert status in (201, 400, 413, 422), told[:500]
    status, told = await asks(client, called("find_jobs", {"status": deep}))
    assert status in (200, 400), told[:500]
    assert b"Fault" not in told


async def test_what_is_too_much_is_refused_by_name(client: Client) -> None:
    cases = {
        "parameters in the address": got("/jobs?" + "a&" * request_heads.PARAMETERS_MAX),
        "question mark": got("/jobs?a=" + "b" * request_heads.QUERY_BYTES_MAX),
        "the path": got("/" + "b" * request_heads.PATH_BYTES_MAX),
        "headers": got("/jobs", **{f"x{each}": "" for each in range(request_heads.HEADERS_MAX)}),
        "a header": got("/jobs", x="y" * request_heads.HEADER_BYTES_MAX),
        f"{MEMBERS_MAX + 1} fields": posted("/jobs", many(MEMBERS_MAX + 1)),
        "1000": posted("/jobs", {"name": "x", "entrypoint": f"{FLOWS}.add", "kwargs": many(1001)}),
    }
    for what, asked in cases.items():
        status, told = await asks(client, asked)
        assert (status, what in told.decode()) == (422, True), told
    problem = problem_in(
        await client.post("/jobs", json={"name": "x", "entrypoint": f"{FLOWS}.add", "kwargs": many(999)}), 422
    )
    assert "and 979 more" in problem["detail"]


def test_no_form_has_more_fields_than_may_be_given() -> None:
    forms = [each for room in (request_models, arguments) for each in vars(room).values() if isinstance(each, type)]
    sizes = [len(each.model_fields) for each in forms if issubclass(each, request_models.Form)]
    sizes += [len(tool.asked.model_fields) for tool in tools(write=True).values()]
    assert max(sizes) <= MEMBERS_MAX // 2
    assert all(issubclass(tool.asked, request_models.Form) for tool in tools(write=True).values())
