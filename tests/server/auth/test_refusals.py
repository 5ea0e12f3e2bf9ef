"""Who was refused how often."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.orchestration.access.tokens import create_token
from aaiclick.server.auth import refusals
from tests.server.conftest import Client


async def counted(client: Client) -> list[tuple[Any, ...]]:
    await client.server.state.refusals.write()
    entries = (await client.get("/audit")).json()["entries"]
    return sorted((each["actor"], each["target"], each["outcome"]) for each in entries if each["verb"] == "refused")


async def test_a_thousand_refusals_are_one_entry_that_counts(each_client: Client) -> None:
    nobody = {"Authorization": "Bearer x"}
    for _ in range(100):
        assert (await each_client.get("/jobs", headers=nobody)).status_code == 401
    for _ in range(3):
        assert (await each_client.get("/audit", headers=each_client.of("viewer"))).status_code == 403
    assert await counted(each_client) == [
        ("nobody", "401 Unauthorized", "100 times"),
        ("viewer", "403 Forbidden", "3 times"),
    ]
    await each_client.get("/jobs", headers=nobody)
    assert ("nobody", "401 Unauthorized", "101 times") in await counted(each_client)
    assert len(await counted(each_client)) == 2


async def test_what_an_agent_may_not_do_is_counted(client: Client) -> None:
    for status, token in ((200, None), (503, None), (422, (await create_token("user")).token)):
        client.server.state.refusals.note(status, token)
    client.server.state.refusals.note(403, (await create_token("agent")).token)
    assert await counted(client) == [("agent", "403 Forbidden", "1 times")]


async def test_they_are_bounded_in_number(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "KINDS_MAX", 3)
    for number in range(10):
        client.server.state.refusals.note(403, (await create_token(f"t{number}")).token)
    assert [each[0] for each in await counted(client)] == ["others", "t0", "t1", "t2"]


async def test_another_hour_has_another_entry(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "ENTRY_S", -1.0)
    for _ in range(2):
        client.server.state.refusals.note(401, None)
        await client.server.state.refusals.write()
    assert await counted(client) == [("nobody", "401 Unauthorized", "1 times")] * 2


async def test_what_cannot_be_written_at_the_end_is_no_reason_to_fail(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: object) -> int:
        raise OSError("it is away")

    monkeypatch.setattr(refusals, "add_count", away)
    client.server.state.refusals.note(401, None)
    await client.server.state.refusals.end()
    assert "it is away" in caplog.text
    monkeypatch.undo()
    assert await counted(client) == [("nobody", "401 Unauthorized", "1 times")]  # nothing is lost meanwhile
