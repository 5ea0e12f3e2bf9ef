"""Places that tokens take."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from starlette.exceptions import HTTPException

from aaiclick.orchestration import jobs as orchestration_jobs
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.server.auth.middleware import REQUESTS_EACH
from aaiclick.server.auth.token_quotas import TokenQuotas
from aaiclick.server.routes import jobs as room
from tests.server.conftest import Client, problem_in


def refused(places: TokenQuotas, token_id: int) -> int:
    with pytest.raises(HTTPException) as refusal, places.of(token_id):
        pass
    assert refusal.value.headers == {"Retry-After": "5"}
    return refusal.value.status_code


def test_one_token_takes_so_many_and_others_find_room() -> None:
    places, taken = TokenQuotas("things", most=10, each=6, kept=3, few=2), ExitStack()
    with taken:
        for _ in range(6):
            taken.enter_context(places.of(1))
        assert refused(places, 1) == 429
        taken.enter_context(places.of(2))
        taken.enter_context(places.of(2))  # of the last three
        assert refused(places, 2) == 429  # others have none
        taken.enter_context(places.of(3))
        taken.enter_context(places.of(4))
        assert refused(places, 5) == 503
    assert (places.number, dict(places.taken)) == (0, {})


async def test_one_token_has_so_many_requests_at_once(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    goes, under_way, asked = asyncio.Event(), asyncio.Event(), 0
    listed = orchestration_jobs.list_jobs

    async def slow(*given: object, **named: object) -> object:
        nonlocal asked
        asked += 1
        if asked == REQUESTS_EACH:
            under_way.set()
        await goes.wait()
        return await listed(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "list_jobs", slow)
    first = [asyncio.create_task(client.get("/jobs")) for _ in range(REQUESTS_EACH)]
    await under_way.wait()
    too_many = await client.get("/workers")
    assert str(REQUESTS_EACH) in problem_in(too_many, 429)["detail"]
    assert too_many.headers["retry-after"] == "5"
    assert (await client.get("/workers", headers=client.of("viewer"))).status_code == 200
    goes.set()
    assert {answer.status_code for answer in await asyncio.gather(*first)} == {200}
    assert (await client.get("/workers")).status_code == 200


async def test_one_token_has_so_many_streams_and_others_hear(client: Client) -> None:
    """A stream takes no place of a request."""
    places, taken = client.server.state.streams.places, ExitStack()
    many = (await create_token("many")).token.id
    client.server.state.streams.ending.set()  # streams end at once
    with taken:
        for _ in range(places.each):
            taken.enter_context(places.of(many))
        assert refused(places, many) == 429
        assert (await client.get("/events/stream")).status_code == 200
    assert places.number == 0
