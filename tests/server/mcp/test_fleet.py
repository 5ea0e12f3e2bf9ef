"""Tools that show everything around jobs."""

from __future__ import annotations

from datetime import date

from aaiclick.orchestration import backfill_job, create_job, register_job, register_worker
from aaiclick.orchestration.launchers.debug import ajob_test
from tests.orchestration import sample_flows as flows
from tests.server.conftest import FLOWS
from tests.server.mcp.conftest import Agent
from tests.server.outside_flows import fail


async def test_events_of_a_job_and_dead_letters_of_all(each_agent: Agent) -> None:
    job = await create_job("bad", fail())
    await ajob_test(job)
    await ajob_test(await create_job("fine", flows.add(1, 2)))
    events, place = [], "0"
    while page := (found := await each_agent.ask("list_job_events", job_id=str(job.id), after=place, limit=2))[
        "events"
    ]:
        events += page
        place = found["next"]
    assert {event["job_id"] for event in events} == {str(job.id)}
    assert events[0]["move"] == "create"
    assert len({event["id"] for event in events}) == len(events) > 2
    assert (await each_agent.ask("list_job_events", job_id=str(job.id), last=True, limit=2))["events"] == events[-2:]
    (letter,) = (await each_agent.ask("list_dead_letters"))["tasks"]
    assert letter["job_id"] == str(job.id)
    assert (await each_agent.ask("list_dead_letters", before=f"{job.id}-{letter['id']}"))["tasks"] == []


async def test_workers(agent: Agent) -> None:
    worker = await register_worker("host", 7)
    (shown,) = (await agent.ask("list_workers"))["workers"]
    assert (shown["id"], shown["hostname"]) == (str(worker.id), "host")
    assert (await agent.ask("list_workers", status="stopped"))["workers"] == []
    assert "Valid are" in (await agent.refused("list_workers", status="gone"))["to_do"]


async def test_the_catalogue(agent: Agent) -> None:
    await register_job("nightly", f"{FLOWS}.add", schedule="0 3 * * *", default_kwargs={"a": 1, "b": 2})
    (entry,) = (await agent.ask("list_registered_jobs", enabled_only=True))["registered_jobs"]
    assert (entry["name"], entry["schedule"]) == ("nightly", "0 3 * * *")
    assert await agent.ask("get_registered_job", name="nightly") == entry
    assert (await agent.refused("get_registered_job", name="daily"))["code"] == "NotFound"


async def test_past_times_and_backfills(agent: Agent) -> None:
    await register_job("nightly", f"{FLOWS}.add", schedule="0 3 * * *", default_kwargs={"a": 1, "b": 2})
    span = {"name": "nightly", "start": "2026-03-01", "end": "2026-03-03"}
    plan = await agent.ask("plan_backfill", **span)
    assert [(each["state"], each["runs"]) for each in plan["times"]] == [("new", True)] * 2
    made = await backfill_job("nightly", date(2026, 3, 1), date(2026, 3, 3))
    (listed,) = (await agent.ask("list_backfills", name="nightly"))["backfills"]
    assert await agent.ask("get_backfill", backfill_id=str(made.id)) == listed
    assert listed["counts"] == {"waiting": 2}
    assert (await agent.ask("list_fires", name="nightly"))["fires"] == []
    assert (await agent.refused("list_fires", name="nightly", before="now"))["code"] == "InputError"
    assert (await agent.refused("get_backfill", backfill_id="5"))["code"] == "NotFound"


async def test_health_and_metrics(agent: Agent) -> None:
    health = await agent.ask("check_health")
    assert {"database", "schema", "workers", "leader"} <= {check["name"] for check in health["checks"]}
    whole = await agent.whole("get_metrics")
    assert "workers_active" in whole["answer"]["text"]
    some = (await agent.ask("get_metrics", contains="workers_active"))["text"]
    assert all("workers_active" in line for line in some.splitlines())
