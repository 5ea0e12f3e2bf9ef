"""The catalogue over HTTP."""

from __future__ import annotations

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import get_job, get_job_result, register_job
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.launchers.debug import ajob_test
from tests.server.conftest import Client, problem_in

ECHO = {"entrypoint": "tests.server.outside_flows.echo", "default_kwargs": {"value": 1}}


async def test_an_entry_is_registered_shown_and_listed(each_client: Client) -> None:
    made = await each_client.put("/registered-jobs/nightly", json=ECHO | {"schedule": "0 2 * * *", "timezone": "UTC"})
    assert made.status_code == 200, made.text
    entry = made.json()
    assert (entry["name"], entry["schedule"], entry["enabled"]) == ("nightly", "0 2 * * *", True)
    assert entry["next_run_at"] is not None
    assert (await each_client.get("/registered-jobs/nightly")).json() == entry
    assert (await each_client.get("/registered-jobs")).json() == {"registered_jobs": [entry]}
    changed = (await each_client.put("/registered-jobs/nightly", json=ECHO | {"priority": 5})).json()
    assert (changed["id"], changed["priority"], changed["schedule"]) == (entry["id"], 5, None)


async def test_enabling_and_disabling(client: Client) -> None:
    await client.put("/registered-jobs/nightly", json=ECHO)
    assert (await client.post("/registered-jobs/nightly/disable")).json()["enabled"] is False
    asked = {"enabled_only": True}
    assert (await client.get("/registered-jobs", params=asked)).json() == {"registered_jobs": []}
    assert (await client.post("/registered-jobs/nightly/enable")).json()["enabled"] is True
    verbs = [entry.verb for entry in await list_audit() if "nightly" in entry.target]
    assert verbs == ["enable", "disable", "register"]


async def test_an_entry_runs_with_arguments_over_its_defaults(client: Client) -> None:
    await client.put("/registered-jobs/nightly", json=ECHO)
    made = await client.post("/registered-jobs/nightly/run", json={"kwargs": {"value": 7}, "key": "k"})
    assert made.status_code == 201
    again = await client.post("/registered-jobs/nightly/run", json={"kwargs": {"value": 7}, "key": "k"})
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    job = await get_job(int(made.json()["id"]))
    assert job is not None
    assert str(job.registered_job_id) == made.json()["registered_job_id"]
    await ajob_test(job)
    assert await get_job_result(job.id) == 7


async def test_arguments_that_are_too_large_together_with_the_defaults_are_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fits, and what would be stored does not: no door makes tables of arguments."""
    monkeypatch.setenv("AAICLICK_VALUE_BYTES_MAX", "1000")
    reset_settings()
    await register_job("nightly", "tests.server.outside_flows.pair", default_kwargs={"left": "x" * 600})
    refused = await client.post("/registered-jobs/nightly/run", json={"kwargs": {"right": "x" * 600}})
    assert "limit of 1000" in problem_in(refused, 413)["detail"]
    assert (await client.get("/jobs")).json()["jobs"] == []


async def test_a_workflow_runs_as_the_entry(client: Client) -> None:
    await client.put("/registered-jobs/flow", json={"entrypoint": "tests.server.outside_flows.workflow"})
    missing = await client.post("/registered-jobs/flow/run", json={})
    assert "missing: 'x'" in problem_in(missing, 422)["detail"]
    made = (await client.post("/registered-jobs/flow/run", json={"kwargs": {"x": 5}})).json()
    job = await get_job(int(made["id"]))
    assert job is not None
    await ajob_test(job)
    assert await get_job_result(job.id) == 5


async def test_an_entry_that_python_registered_runs_too(client: Client) -> None:
    """Whoever registered it was trusted, also with a function that is not marked."""
    await register_job("mine", "tests.server.outside_flows.plain")
    assert (await client.post("/registered-jobs/mine/run", json={}, headers=client.of("operator"))).status_code == 201


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schedule": "61 * * * *"}, "minute"),
        ({"schedule": "* * *"}, "schedule"),
        ({"timezone": "../../etc/passwd"}, "time"),
        ({"entrypoint": "os.system"}, "these may be run"),
        ({"entrypoint": "tests.server.outside_flows.plain"}, "only functions marked"),
        ({"default_kwargs": {"nothing": 1}}, "unexpected"),
        ({"overlap": "maybe"}, "overlap"),
    ],
)
async def test_what_is_refused(client: Client, change: dict[str, object], said: str) -> None:
    answer = await client.put("/registered-jobs/nightly", json=ECHO | change)
    assert said in problem_in(answer, 422)["detail"]
    assert (await client.get("/registered-jobs")).json() == {"registered_jobs": []}


async def test_an_entry_that_is_not_there(client: Client) -> None:
    problem_in(await client.get("/registered-jobs/nothing"), 404)
    problem_in(await client.post("/registered-jobs/nothing/run", json={}), 404)
    problem_in(await client.post("/registered-jobs/nothing/enable"), 404)
    problem_in(await client.post("/registered-jobs/nothing/disable"), 404)
    problem_in(await client.get("/registered-jobs/%00"), 422)
