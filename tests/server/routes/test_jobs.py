"""Jobs over HTTP."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from aaiclick.orchestration import create_job, get_job, get_job_result, get_tasks_for_job
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.launchers.debug import ajob_test
from aaiclick.server.routes.jobs import DEGRADED
from tests.orchestration import data_flows
from tests.orchestration import sample_flows as flows
from tests.server.conftest import FLOWS, Client, opened, problem_in
from tests.server.outside_flows import chain, fail
from tests.servers.process import free_port
from tests.support.redis_streams import redis_beside

ADD = {"name": "sum", "entrypoint": f"{FLOWS}.add", "kwargs": {"a": 1, "b": 2}}


async def test_a_job_is_submitted_and_shown(each_client: Client) -> None:
    made = await each_client.post("/jobs", json=ADD)
    assert made.status_code == 201
    job = made.json()
    assert (job["name"], job["status"], job["total_tasks"]) == ("sum", "pending", 1)
    shown = await each_client.get(f"/jobs/{job['id']}")
    assert shown.json() == job
    stored = await get_job(int(job["id"]))
    assert stored is not None
    (task,) = await get_tasks_for_job(stored.id)
    assert task.entrypoint == f"@{FLOWS}.add"


async def test_what_was_submitted_runs(client: Client) -> None:
    job = (await client.post("/jobs", json=ADD)).json()
    stored = await get_job(int(job["id"]))
    assert stored is not None
    await ajob_test(stored)
    assert await get_job_result(stored.id) == 3
    assert (await client.get(f"/jobs/{job['id']}")).json()["status"] == "completed"


async def test_a_key_makes_submitting_idempotent(each_client: Client) -> None:
    first = await each_client.post("/jobs", json=ADD | {"key": "monday"})
    again = await each_client.post("/jobs", json=ADD, headers={"Idempotency-Key": "monday"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    other = await each_client.post("/jobs", json=ADD | {"key": "monday", "kwargs": {"a": 5, "b": 6}})
    assert "monday" in problem_in(other, 409)["detail"]


async def test_other_options_with_the_same_key_are_another_body(client: Client) -> None:
    """Whoever asks for a time limit must not be given a job without one as if it were theirs."""
    asked = ADD | {"key": "monday", "timeout_s": 9, "preservation_mode": "full"}
    assert (await client.post("/jobs", json=asked)).status_code == 201
    same = asked | {"timeout_s": 9.0, "preservation_mode": "FULL"}
    assert (await client.post("/jobs", json=same)).status_code == 200
    for other in ({"timeout_s": 10}, {"timeout_s": None}, {"priority": 3}, {"preservation_mode": "none"}):
        problem_in(await client.post("/jobs", json=asked | other), 409)


async def test_two_keys_that_differ_are_refused(client: Client) -> None:
    answer = await client.post("/jobs", json=ADD | {"key": "a"}, headers={"Idempotency-Key": "b"})
    assert "Idempotency-Key" in problem_in(answer, 422)["detail"]


async def test_a_reference_in_the_arguments_stays_a_dict(client: Client) -> None:
    given = {"object_type": "object", "table": "t_1"}
    body = {"name": "echo", "entrypoint": "tests.server.outside_flows.echo", "kwargs": {"value": given}}
    job = (await client.post("/jobs", json=body)).json()
    stored = await get_job(int(job["id"]))
    assert stored is not None
    await ajob_test(stored)
    assert await get_job_result(stored.id) == given


async def test_arguments_become_what_the_annotations_promise_or_are_refused(client: Client) -> None:
    body = {"name": "on", "entrypoint": "tests.server.outside_flows.on_day", "kwargs": {"day": "2026-02-03"}}
    job = (await client.post("/jobs", json=body)).json()
    stored = await get_job(int(job["id"]))
    assert stored is not None
    await ajob_test(stored)
    assert await get_job_result(stored.id) == date(2026, 2, 4)
    for kwargs, said in (({"day": "soon"}, "kwargs.day"), ({"day": "2026-01-01", "by": "1"}, "expected int, got str")):
        assert said in problem_in(await client.post("/jobs", json=body | {"kwargs": kwargs}), 422)["detail"]
    defaults = {"entrypoint": body["entrypoint"], "default_kwargs": {"day": "soon"}}
    assert "kwargs.day" in problem_in(await client.put("/registered-jobs/on", json=defaults), 422)["detail"]


@pytest.mark.parametrize(
    ("entrypoint", "said"),
    [
        ("os.system", "these may be run"),
        ("tests.orchestrations.x", "these may be run"),
        (f"{FLOWS}.nothing_there", "has no nothing_there"),
        ("tests.orchestration.no_such_module.f", "no_such_module"),
        ("tests.server.outside_flows.plain", "only functions marked"),
        ("tests.server.outside_flows.json.dumps", "only functions marked"),
        ("tests.server.outside_exits.f", "sys.exit(3)"),
        ("tests.server; rm -rf x", "these may be run"),
        ("tests.server.x y", "not a dotted name"),
        ("", "these may be run"),
    ],
)
async def test_an_entrypoint_that_may_not_be_run_is_refused(client: Client, entrypoint: str, said: str) -> None:
    answer = await client.post("/jobs", json=ADD | {"entrypoint": entrypoint})
    assert said in problem_in(answer, 422)["detail"]
    assert (await client.get("/jobs")).json() == {"jobs": [], "next": None}


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"kwargs": {"a": 1}}, 422, "missing: 'b'"),
        ({"kwargs": {"a": 1, "b": 2, "c": 3}}, 422, "unexpected: 'c'"),
        ({"name": " x"}, 422, "blank"),
        ({"name": "a\u0000b"}, 422, "U+0000"),
        ({"priority": 2**40}, 422, "priority"),
        ({"timeout_s": -1}, 422, "timeout_s"),
        ({"preservation_mode": "SOME"}, 422, "preservation_mode"),
        ({"kwargs": {"a": "x" * 1_000_001, "b": 1}}, 413, "limit"),
        ({"priority": "1"}, 422, "priority"),
        ({"kwargs": []}, 422, "kwargs"),
    ],
)
async def test_what_is_wrong_is_named(client: Client, change: dict[str, object], status: int, said: str) -> None:
    assert said in problem_in(await client.post("/jobs", json=ADD | change), status)["detail"]
    assert (await client.get("/jobs")).json()["jobs"] == []


async def test_all_that_is_wrong_is_listed(client: Client) -> None:
    body = {"entrypoint": 5, "kwargs": [], "colour": "red", "shape": "round"}
    found = problem_in(await client.post("/jobs", json=body), 422)["errors"]
    assert {each["field"] for each in found} == {"name", "entrypoint", "kwargs", "colour", "shape"}


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"[]", 422), (b"", 422), (b"null", 422), (b"\xff", 400)])
async def test_a_body_that_is_none(client: Client, body: bytes, status: int) -> None:
    problem_in(await client.post("/jobs", content=body, headers={"Content-Type": "application/json"}), status)


async def test_jobs_come_in_pages(each_client: Client) -> None:
    made = [(await create_job(f"job {number}", flows.add, kwargs={"a": 1, "b": 2})).id for number in range(5)]
    seen, before = [], None
    while True:
        asked = {"limit": 2} | ({"before": before} if before else {})
        page = (await each_client.get("/jobs", params=asked)).json()
        seen += [int(job["id"]) for job in page["jobs"]]
        before = page["next"]
        if before is None:
            break
    assert seen == made[::-1]


async def test_filters(client: Client) -> None:
    await create_job("first", flows.add, kwargs={"a": 1, "b": 2})
    await create_job("second", flows.add, kwargs={"a": 1, "b": 2})
    assert [job["name"] for job in (await client.get("/jobs", params={"name_like": "sec%"})).json()["jobs"]] == [
        "second"
    ]
    assert (await client.get("/jobs", params={"name_like": "%'; DROP TABLE jobs"})).json()["jobs"] == []
    assert len((await client.get("/jobs", params={"status": "PENDING"})).json()["jobs"]) == 2
    wrong = problem_in(await client.get("/jobs", params={"status": "RUNNIG"}), 422)["detail"]
    assert "Did you mean running" in wrong


@pytest.mark.parametrize(
    "asked",
    [{"limit": -1}, {"limit": 10**9}, {"limit": "x"}, {"offset": -5}, {"before": "x"}, {"before": "1e3"}, {"limit": 0}],
)
async def test_paging_that_is_refused(client: Client, asked: dict[str, Any]) -> None:
    problem_in(await client.get("/jobs", params=asked), 422)


@pytest.mark.parametrize(
    "job_id", ["0", "-1", "9223372036854775808", "1e3", "0x10", "1.5", "٣", "99999999999999999999"]
)
@pytest.mark.parametrize("more", ["", "/stats", "/graph", "/tasks"])
async def test_ids_that_are_none(client: Client, job_id: str, more: str) -> None:
    problem_in(await client.get(f"/jobs/{job_id}{more}"), 422)


@pytest.mark.parametrize("more", ["", "/stats", "/graph", "/tasks"])
async def test_a_job_that_is_not_there(client: Client, more: str) -> None:
    problem_in(await client.get(f"/jobs/12345{more}"), 404)


async def test_cancelling(each_client: Client) -> None:
    job = await create_job("x", flows.add, kwargs={"a": 1, "b": 2})
    assert (await each_client.post(f"/jobs/{job.id}/cancel")).json() == {"cancelled": True}
    assert (await each_client.post(f"/jobs/{job.id}/cancel")).json() == {"cancelled": False}
    problem_in(await each_client.post("/jobs/12345/cancel"), 404)
    entries = [entry for entry in await list_audit() if entry.verb == "cancel"]
    assert [entry.outcome for entry in entries][1:] == ["nothing: it had ended already", "done"]
    assert entries[0].outcome is not None
    assert entries[0].outcome.startswith("refused: NotFound")
    assert {entry.actor for entry in entries} == {"admin"}


async def test_stats_graph_and_tasks(each_client: Client) -> None:
    job = await chain.submit(x=3)
    stats = (await each_client.get(f"/jobs/{job.id}/stats")).json()
    tasks = await get_tasks_for_job(job.id)
    assert (stats["job_id"], stats["total_tasks"]) == (str(job.id), len(tasks))
    graph = (await each_client.get(f"/jobs/{job.id}/graph")).json()
    assert [task["id"] for task in graph["tasks"]] == [str(task.id) for task in tasks]
    assert graph["dependencies"]
    assert {edge["next_type"] for edge in graph["dependencies"]} == {"task"}
    first = (await each_client.get(f"/jobs/{job.id}/tasks", params={"limit": 1})).json()
    rest = (await each_client.get(f"/jobs/{job.id}/tasks", params={"after": first["next"]})).json()
    assert [*first["tasks"], *rest["tasks"]] == graph["tasks"]
    assert rest["next"] is None


async def test_whoever_polls_is_told_that_nothing_changed(client: Client) -> None:
    job = await create_job("x", flows.add, kwargs={"a": 1, "b": 2})
    first = await client.get(f"/jobs/{job.id}")
    same = await client.get(f"/jobs/{job.id}", headers={"If-None-Match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    await client.post(f"/jobs/{job.id}/cancel")
    changed = await client.get(f"/jobs/{job.id}", headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


async def test_retrying_what_failed(client: Client) -> None:
    job = await create_job("x", "tests.server.outside_flows.fail")
    await ajob_test(job)
    (task,) = await get_tasks_for_job(job.id)
    would = (await client.post(f"/jobs/{job.id}/retry", json={"dry_run": True})).json()
    assert would == {"task_ids": [str(task.id)], "dry_run": True}
    assert (await client.get(f"/jobs/{job.id}")).json()["status"] == "failed"
    assert (await client.post(f"/jobs/{job.id}/retry")).json() == {"task_ids": [str(task.id)], "dry_run": False}
    assert (await client.get(f"/jobs/{job.id}")).json()["status"] in ("pending", "running")
    problem_in(await client.post("/jobs/12345/retry"), 404)


async def test_what_a_job_was_called_with_and_what_it_returned(client: Client) -> None:
    asked = {"name": "echo", "entrypoint": "tests.server.outside_flows.echo", "kwargs": {"value": {"password": "x1"}}}
    made = (await client.post("/jobs", json=asked)).json()
    assert made["arguments"] == {"value": {"password": "***"}}
    problem_in(await client.get(f"/jobs/{made['id']}/result"), 409)
    job = await get_job(int(made["id"]))
    assert job is not None
    await ajob_test(job)
    found = (await client.get(f"/jobs/{made['id']}/result")).json()
    assert (found["result"], found["complete"]) == ({"password": "***"}, True)
    assert (await client.get("/jobs")).json()["jobs"][0]["arguments"] == made["arguments"]
    problem_in(await client.get("/jobs/5/result"), 404)


async def test_what_tasks_expected_and_did_not_find(client: Client) -> None:
    job = await ajob_test(await create_job("warned", data_flows.expecting("warn")))
    told = (await client.get(f"/jobs/{job.id}/errors")).json()
    assert (told["errors"], [each["outcome"] for each in told["expectations"]]) == ([], ["warned", "warned"])
    task = (await client.get(f"/tasks/{told['expectations'][0]['task_id']}")).json()
    assert task["expectations"] == told["expectations"]


async def test_where_tasks_failed(client: Client) -> None:
    job = await create_job("bad", fail())
    await ajob_test(job)
    (error,) = (await client.get(f"/jobs/{job.id}/errors")).json()["errors"]
    assert error["traceback"].startswith("Traceback")
    task = (await client.get(f"/tasks/{error['task_id']}")).json()
    assert (task["traceback"], task["error"]) == (error["traceback"], error["error"])
    log = (await client.get(f"/tasks/{error['task_id']}/logs")).text
    assert log.endswith(error["traceback"])
    problem_in(await client.get("/jobs/5/errors"), 404)


@pytest.mark.parametrize("is_there", [True, False])
async def test_where_redis_is_away_a_job_is_taken_all_the_same_and_the_answer_says_so(
    surroundings: Path, redis_server: str, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    with redis_beside(redis_server if is_there else f"redis://127.0.0.1:{free_port()}/0", monkeypatch, redis_server):
        async for client in opened():
            made = await client.post("/jobs", json=ADD)
            assert (made.status_code, made.headers.get(DEGRADED)) == (201, None if is_there else "true")
            stored = await get_job(int(made.json()["id"]))
            assert stored is not None
            await ajob_test(stored)
            assert await get_job_result(stored.id) == 3
