"""Events over HTTP, as pages and as a stream.

The client of the tests reads an answer as a whole: the streams are told to end here, as the server's end does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pytest

from aaiclick.orchestration import cancel_job, create_job, get_events_for_job
from aaiclick.orchestration.access.tokens import create_token
from aaiclick.orchestration.connections import coordinated
from aaiclick.orchestration.models import Job
from aaiclick.server.routes import events
from aaiclick.server.streaming import event_reader, streams
from tests.orchestration import sample_flows as flows
from tests.server.conftest import Client, problem_in
from tests.server.streaming.test_streams import Listener
from tests.support.orchestra import done


async def new_job() -> Job:
    return await create_job("x", flows.add, kwargs={"a": 1, "b": 2})


def read(text: str) -> list[dict[str, Any]]:
    """The events of a stream."""
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


@contextmanager
def quick_looks() -> Iterator[tuple[list[object], list[object]]]:
    """Gives one that grows with each look at the database, and one that grows when a stream has nothing to tell."""
    looks: list[object] = []
    silences: list[object] = []
    look, next_piece = event_reader._read, event_reader.EventReader.next_piece

    async def looked(*asked: Any, **options: Any) -> Any:
        looks.append(asked)
        return await look(*asked, **options)

    async def next_or_none(*asked: Any, **options: Any) -> Any:
        piece = await next_piece(*asked, **options)
        if piece is None:
            silences.append(asked)
        return piece

    with ExitStack() as patches:
        for where, name, value in (
            (event_reader, "LOOK_EVERY_S", 0.01),
            (event_reader, "_read", looked),
            (event_reader.EventReader, "next_piece", next_or_none),
            (events, "ALIVE_EVERY_S", 0.02),
        ):
            patches.enter_context(mock.patch.object(where, name, value))
        yield looks, silences


async def more(counted: list[object], number: int, hearing: asyncio.Task[Any]) -> None:
    """Wait until so many have come, or the stream has ended by itself."""
    enough = len(counted) + number
    while len(counted) < enough and not hearing.done():  # noqa: ASYNC110 (they only count)
        await asyncio.sleep(0.001)


async def listen(client: Client, *, headers: dict[str, str] | None = None, during: Any = None, **asked: Any) -> str:
    """What a stream tells until the server ends."""
    client.server.state.streams = streams.Streams()
    with quick_looks() as (looks, silences):
        hearing = asyncio.create_task(client.get("/events/stream", params=asked, headers=headers or {}))
        while not client.server.state.streams.open and not hearing.done():  # noqa: ASYNC110 (the server only counts them)
            await asyncio.sleep(0.001)
        if during is not None:
            await during()
        await more(looks, 3, hearing)  # one of them was begun after that
        await more(silences, 2, hearing)  # and all that it found was told
    client.server.state.streams.ending.set()
    answer = await hearing
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (client.server.state.streams.open, client.server.state.reader.listeners) == (0, 0)
    return answer.text


async def test_events_come_in_pages(each_client: Client) -> None:
    job = await new_job()
    await cancel_job(job.id)
    start = str((await get_events_for_job(job.id))[0].id - 1)  # a database that was used before has counted on
    whole = (await each_client.get("/events", params={"after": start})).json()
    assert [event["move"] for event in whole["events"]] == ["create", "cancel", "cancel"]
    first = (await each_client.get("/events", params={"after": start, "limit": 1})).json()
    rest = (await each_client.get("/events", params={"after": first["next"]})).json()
    assert [*first["events"], *rest["events"]] == whole["events"]
    assert rest["next"] == whole["events"][-1]["id"]
    after_all = (await each_client.get("/events", params={"after": rest["next"]})).json()
    assert after_all == {"events": [], "next": rest["next"]}


async def test_a_report_that_came_too_late_is_told_with_its_run(client: Client) -> None:
    job = await new_job()
    async with coordinated() as coordinator:
        worker = (await coordinator.register(hostname="here", pid=1)).id
        (claim,) = await coordinator.claim(worker, limit=1)
        await coordinator.release(worker, [claim])

        async def report() -> None:
            await coordinator.report(worker, [done(claim)])

        (heard,) = read(await listen(client, during=report))
    stored = (await get_events_for_job(job.id))[-1]
    assert heard["id"] == str(stored.id)
    assert (heard["task_id"], heard["epoch"], heard["worker_id"]) == (str(claim.task_id), claim.epoch, str(worker))
    assert (heard["move"], heard["status"]) == ("late_report", "pending")
    assert heard["detail"] == "completed, but released before"


async def test_a_stream_tells_what_happens_from_now_on(client: Client) -> None:
    await cancel_job((await new_job()).id)
    job = await new_job()
    heard = read(await listen(client, during=lambda: cancel_job(job.id)))
    assert heard
    assert {event["job_id"] for event in heard} == {str(job.id)}
    assert {event["move"] for event in heard} == {"cancel"}


async def test_a_stream_begins_where_an_event_may_still_be_committed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the newest, it would never tell what a slower transaction has begun before and commits now."""
    first = (await get_events_for_job((await new_job()).id))[-1].id
    later = await new_job()

    async def settled_event() -> int:
        return first

    monkeypatch.setattr(events, "settled_event", settled_event)
    assert {event["job_id"] for event in read(await listen(client))} == {str(later.id)}


async def test_a_stream_is_taken_up_where_it_was_left(client: Client) -> None:
    job = await new_job()
    await cancel_job(job.id)
    heard = read(await listen(client, after="0"))
    again = read(await listen(client, headers={"Last-Event-ID": heard[0]["id"]}))
    assert again == heard[1:]
    assert read(await listen(client, headers={"Last-Event-ID": heard[-1]["id"]}, after="0")) == []


async def test_a_stream_of_one_job_moves_on_past_the_others(client: Client) -> None:
    mine, other = await new_job(), await new_job()
    await cancel_job(mine.id)
    await cancel_job(other.id)
    text = await listen(client, after="0", job_id=str(mine.id))
    assert {event["job_id"] for event in read(text)} == {str(mine.id)}
    last = [line.removeprefix("id: ") for line in text.splitlines() if line.startswith("id: ")][-1]
    assert last == (await client.get("/events")).json()["next"]


@pytest.mark.parametrize("wrong", ["x", "-1", "9223372036854775808", "1e3", "1" * 30])
async def test_a_place_that_is_none(client: Client, wrong: str) -> None:
    problem_in(await client.get("/events/stream", headers={"Last-Event-ID": wrong}), 422)


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/events/stream", {"headers": {"Last-Event-ID": "900"}}),
        ("/events/stream", {"params": {"after": "900"}}),
        ("/events", {"params": {"after": "900"}}),
    ],
)
async def test_a_place_that_nothing_has_come_to_yet(client: Client, path: str, given: dict[str, Any]) -> None:
    """Whoever waited there would hear nothing until as many events have come, and then not what came before."""
    await new_job()
    newest = (await client.get("/events")).json()["next"]
    problem = problem_in(await client.get(path, **given), 422)
    assert f"at most {newest}, the id of the newest event" in problem["detail"]
    assert (await client.get("/events", params={"after": newest})).json() == {"events": [], "next": newest}


async def test_whoever_leaves_is_not_read_for(client: Client) -> None:
    listener = Listener(client, (await create_token("listener")).token)
    reader = client.server.state.reader
    hearing = asyncio.create_task(listener.hears(listener.asks_for(events._events(reader, 0, None))))
    while not reader.listeners:  # noqa: ASYNC110 (it only counts them)
        await asyncio.sleep(0.001)
    listener.left.set()
    assert (await hearing, reader.listeners) == ([b": here\n\n"], 0)


async def test_a_silent_stream_says_that_it_is_there(client: Client) -> None:
    assert ": still here\n\n" in await listen(client)


async def test_so_many_streams_and_no_more(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.server.state.streams.places, "most", 0)
    problem_in(await client.get("/events/stream"), 503)
