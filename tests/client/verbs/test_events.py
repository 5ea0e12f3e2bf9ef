"""Streams of events that are cut, and taken up again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.client import AsyncAPIClient
from aaiclick.client.networks import finished, iterated
from aaiclick.errors import InputError, ServerUnreachable
from tests.client.scripted import ScriptedNetwork, answered, streamed

HERE = b": here\n\n"


def event(number: int, task_id: str | None = None) -> bytes:
    data = json.dumps({"id": str(number), "task_id": task_id})
    return f"id: {number}\nevent: complete\ndata: {data}\n\n".encode()


def client(network: ScriptedNetwork) -> AsyncAPIClient:
    return AsyncAPIClient("http://server", "x", retries=0, network=network)


def ids(network: ScriptedNetwork, count: int, **how: Any) -> list[str]:
    followed = iterated(client(network).follow_events(**how))
    return [next(followed)["id"] for _ in range(count)]


def resumed_from(network: ScriptedNetwork) -> list[str | None]:
    heads = [dict(line.partition(": ")[::2] for line in asked.split("\r\n")) for asked in network.asked]
    return [head.get("Last-Event-ID") for head in heads]


def test_a_stream_goes_on_after_the_last_whole_event() -> None:
    half = event(3)[:-20]
    network = ScriptedNetwork(
        streamed(HERE + event(1) + event(2) + half),
        None,
        streamed(HERE + event(3) + b"id: 9\n\n"),
        streamed(HERE + event(10)),
    )
    assert ids(network, 4) == ["1", "2", "3", "10"]
    assert resumed_from(network) == [None, "2", "9"]
    assert len(network.slept) == 3


def test_it_begins_where_it_is_told() -> None:
    network = ScriptedNetwork(streamed(HERE + event(6)))
    assert ids(network, 1, after=5, job_id=7) == ["6"]
    assert resumed_from(network) == ["5"]
    assert "job_id=7" in network.asked[0]


def test_a_place_that_the_server_does_not_know_is_forgotten() -> None:
    told = json.dumps(
        {"type": "urn:aaiclick:problem:InputError", "detail": "Last-Event-ID: 9 is from elsewhere"}
    ).encode()
    network = ScriptedNetwork(streamed(HERE + event(9)), answered(told, "422 No"), streamed(HERE + event(1)))
    assert ids(network, 2) == ["9", "1"]
    assert resumed_from(network) == [None, "9", None]


def test_what_is_refused_for_good_is_raised() -> None:
    told = json.dumps({"type": "urn:aaiclick:problem:InputError", "detail": "no"}).encode()
    with pytest.raises(InputError):
        ids(ScriptedNetwork(answered(told, "422 No")), 1)


def test_a_server_that_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aaiclick.client.verbs.events.OUTAGE_S_MAX", -1.0)
    with pytest.raises(ServerUnreachable):
        ids(ScriptedNetwork(None), 1)


def test_waiting_looks_once_for_each_sign_and_no_more() -> None:
    def job(status: str) -> bytes:
        return answered(json.dumps({"id": "7", "status": status, "completed_tasks": 0}).encode())

    network = ScriptedNetwork(
        job("running") + job("running"),
        streamed(HERE + event(1, task_id="5") + event(2, task_id="6") + event(3)),
        job("completed"),
    )
    found = finished(client(network).wait_for_job(7))
    assert found["status"] == "completed"
    paths = [asked.split(" ")[1] for asked in network.asked]
    assert paths == ["/api/v1/jobs/7", "/api/v1/events/stream?job_id=7", "/api/v1/jobs/7", "/api/v1/jobs/7"]
