"""Calls as bodies, against a real server: what is sent, which answers are failures, and what the result is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from aaiclick.errors import InputError, NoContext, RequestFailed, RequestFailedForGood
from aaiclick.executors.rest_call import rest, run
from aaiclick.orchestration import create_task
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import arguments_from_outside
from tests.support.bodies import until
from tests.support.web import Web, serving

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as server:
        yield server


async def test_what_is_sent(web: Web) -> None:
    await run(
        "POST", f"{web.url}/status/200?a=1", params={"b": [2, "ü"]}, headers={"X-Y": "z"}, json={"größe": [1, None]}
    )
    (asked,) = web.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/status/200?a=1&b=2&b=%C3%BC", '{"größe": [1, null]}')
    assert (asked.headers["X-Y"], asked.headers["Content-Type"]) == ("z", "application/json")
    await run("PUT", f"{web.url}/status/204", body="text")
    assert (web.asked[1].body, web.asked[1].headers["Content-Type"]) == ("text", "text/plain; charset=utf-8")


async def test_what_the_result_is(web: Web) -> None:
    url = f"{web.url}/value"
    assert await run("GET", url, params={"json": '{"a": 1}'}) == {"a": 1}
    assert await run("GET", url, params={"json": '{"a": 1}'}, result="text") == '{"a": 1}'
    assert await run("GET", url, params={"json": "1"}, result="none") is None
    assert await run("GET", f"{web.url}/status/204") is None
    assert await run("GET", f"{web.url}/status/200?text=hi") == "hi"
    whole: Any = await run("GET", f"{web.url}/status/201?text=hi", result="response")
    assert (whole["status"], whole["body"], whole["headers"]["Content-Length"]) == (201, "hi", "2")
    with pytest.raises(InputError, match="no JSON"):
        await run("GET", f"{web.url}/status/200?text=hi", result="json")


async def test_which_answers_are_failures(web: Web) -> None:
    for status, kind in ((503, RequestFailed), (429, RequestFailed), (404, RequestFailedForGood), (301, None)):
        with pytest.raises(RequestFailed, match=f"status {status}") as failed:
            await run("GET", f"{web.url}/status/{status}?secret=hunter2")
        assert type(failed.value) is (kind or RequestFailedForGood)
        assert failed.value.status == status
        assert "hunter2" not in str(failed.value)
    with pytest.raises(RequestFailedForGood, match="status 503"):
        await run("GET", f"{web.url}/status/503", retry_statuses=[])
    assert await run("GET", f"{web.url}/status/404", success=[404]) is None
    with pytest.raises(RequestFailed, match="no answer within"):
        await run("GET", f"{web.url}/hangs", request_timeout_s=0.05)


async def test_an_address_of_the_inside_is_not_called_for_somebody_outside(web: Web) -> None:
    with arguments_from_outside(), pytest.raises(RequestFailedForGood, match="AAICLICK_REST_ALLOW"):
        await run("GET", f"{web.url}/status/200")
    assert not web.asked


# ---------------------------------------------------------------- work that goes on there


async def test_it_is_asked_until_it_is_done(web: Web) -> None:
    web.will_answer("/jobs", (202, JSON, {"id": "a/b", "state": "queued"}))
    running, done = (200, JSON, {"state": "running"}), (200, JSON, {"state": "done", "rows": 3})
    web.will_answer("/jobs/a%2Fb", running, (503, {}, ""), running, done)
    poll = {"url": web.url + "/jobs/{id}", "every_s": 0.01, "field": "state", "done": ["done"], "failed": ["failed"]}
    headers = {"Authorization": "Bearer 1234"}
    assert await run("POST", f"{web.url}/jobs", poll=poll, headers=headers) == {"state": "done", "rows": 3}
    assert [asked.headers["Authorization"] for asked in web.to("/jobs/a%2Fb")] == ["Bearer 1234"] * 4


async def test_it_is_asked_where_location_says(web: Web) -> None:
    web.will_answer("/jobs", (202, {"Location": "/progress"}, ""))
    web.will_answer("/progress", (202, {}, ""), (200, JSON, [1]))
    assert await run("POST", f"{web.url}/jobs", poll={"every_s": 0.01}) == [1]


async def test_headers_go_to_no_other_place_that_an_answer_names(web: Web) -> None:
    with serving() as other:
        web.will_answer("/jobs", (202, {"Location": f"{other.url}/progress"}, ""))
        other.will_answer("/progress", (200, {}, ""))
        await run("POST", f"{web.url}/jobs", poll={"every_s": 0.01}, headers={"Authorization": "Bearer 1234"})
        assert "Authorization" not in other.asked[0].headers


async def test_work_that_fails_there_fails_here(web: Web) -> None:
    web.will_answer("/jobs", (202, {"Location": "/progress"}, ""))
    web.will_answer("/progress", (200, JSON, {"job": {"state": "failed"}}))
    poll = {"every_s": 0.01, "field": "job.state", "done": ["done"], "failed": ["failed"]}
    with pytest.raises(RequestFailedForGood, match=r"job\.state is 'failed'"):
        await run("POST", f"{web.url}/jobs", poll=poll)


async def test_it_is_told_when_the_run_is_stopped(web: Web) -> None:
    web.will_answer("/jobs", (202, JSON, {"id": 7, "state": "running"}))
    web.answers["/jobs/7"] = [(200, JSON, '{"state": "running"}')] * 100_000
    web.will_answer("/jobs/7/cancel", (200, {}, ""))
    poll = {"url": web.url + "/jobs/{id}", "every_s": 0.01, "field": "state", "done": ["done"]}
    going = asyncio.create_task(run("POST", f"{web.url}/jobs", poll=poll, cancel_url=web.url + "/jobs/{id}/cancel"))
    await until(lambda: len(web.to("/jobs/7")) > 1)
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert [asked.method for asked in web.to("/jobs/7/cancel")] == ["POST"]


async def test_only_a_run_can_be_called_back(web: Web) -> None:
    with pytest.raises(NoContext, match="callback"):
        await run("POST", f"{web.url}/status/200", callback=True)
    assert not web.asked


# ---------------------------------------------------------------- as a task


def test_a_task_of_a_call_is_made_like_any_other() -> None:
    first = create_task("tests.orchestration.sample_flows.plain")
    made = rest("POST", "https://example.org/jobs", json={"x": first}, max_retries=3)
    assert (made.name, made.entrypoint, made.max_retries) == ("POST example.org", "rest:", 3)
    assert [edge.previous for edge in made._in] == [first]
    assert rest("GET", first).name == "GET"


@pytest.mark.parametrize(
    "options",
    [
        {"method": "BREW"},
        {"url": "ftp://x/"},
        {"json": 1, "body": "x"},
        {"result": "xml"},
        {"request_timeout_s": 0},
        {"success": [99]},
        {"retry_statuses": "503"},
        {"retry_statuses": None},
        {"headers": {"X\r\n": "1"}},
        {"poll": {"often": 1}},
        {"poll": {"every_s": 0}},
        {"poll": {"done": ["x"]}},
        {"poll": {"url": "http://{host}/"}},
        {"poll": {}, "callback": True},
        {"callback": 3},
        {"cancel_url": "http://{host}/"},
        {"timeout": 3},
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any]) -> None:
    given = {"method": "GET", "url": "https://example.org", **options}
    with pytest.raises(InputError):
        rest(given.pop("method"), given.pop("url"), **given)
