"""What is brought along."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message

from aaiclick.errors import InputError, ValueTooLarge
from aaiclick.server.transport import request_bodies
from aaiclick.server.transport.request_bodies import read_body, refuse_doubles
from tests.server.conftest import FLOWS, Client, problem_in

JSON = {"Content-Type": "application/json"}


async def brought(*parts: bytes, length: str | None = None, bytes_max: int = 100) -> bytes:
    """What is given again of a body that comes in these parts."""
    coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    coming.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> Message:
        return coming.pop(0)

    again = await read_body(
        Headers(raw=[] if length is None else [(b"content-length", length.encode())]), receive, bytes_max
    )
    body: bytes = (await again())["body"]
    return body


async def test_a_body_is_given_again_whole() -> None:
    assert await brought(b'{"a":', b" 1}") == b'{"a": 1}'


@pytest.mark.parametrize("length", ["101", "9" * 5000])
async def test_what_is_announced_too_large_is_not_read(length: str) -> None:
    with pytest.raises(ValueTooLarge):
        await brought(length=length)


@pytest.mark.parametrize("length", ["-1", "x", "٣", ""])
async def test_what_is_announced_in_a_strange_way_is_counted(length: str) -> None:
    assert await brought(b"x" * 100, length=length) == b"x" * 100
    with pytest.raises(ValueTooLarge):
        await brought(b"x" * 100, b"x", length=length)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 1}',
        b'{"a": 1, "\\u0061": 2}',
        b'[{"kwargs": {"b": {"c": 1, "d": 1, "c": 2}}}]',
        '{"a": 1, "a": 2}'.encode("utf-16"),
    ],
)
def test_a_field_that_is_given_twice(body: bytes) -> None:
    with pytest.raises(InputError, match="given twice"):
        refuse_doubles(body)


@pytest.mark.parametrize(
    "body", [b"", b"no JSON", b'{"a": {"a": [{"a": 1}, {"a": 2}]}}', b"[" * 100_000, b"\xff", b"1" * 5000]
)
def test_whatever_else_it_is_others_judge(body: bytes) -> None:
    refuse_doubles(body)


async def test_neither_rest_nor_agents_choose_among_two(client: Client) -> None:
    twice = f'{{"name": "x", "entrypoint": "{FLOWS}.nothing", "key": "a", "key": "b"}}'
    assert "'key'" in problem_in(await client.post("/jobs", content=twice, headers=JSON), 422)["detail"]
    problem_in(await client.post("http://localhost:8765/mcp", content=b'{"id": 1, "id": 2}', headers=JSON), 422)
    assert (await client.get("/jobs")).json()["jobs"] == []


async def test_a_body_that_is_cut_off_is_not_taken_for_whole() -> None:
    coming: list[Message] = [{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Message:
        return coming.pop(0)

    with pytest.raises(HTTPException) as refused:
        await read_body(Headers(raw=[]), receive, 100)
    assert refused.value.status_code == 400


async def test_a_body_that_does_not_come_is_not_waited_for(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_bodies, "BODY_S_MAX", 0.01)

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    problem_in(await client.post("/jobs", content=slow(), headers=JSON), 408)
