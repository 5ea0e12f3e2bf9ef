"""Tools that show jobs."""

from __future__ import annotations

from aaiclick.orchestration import Job, create_job
from aaiclick.orchestration.launchers.debug import ajob_test
from tests.orchestration import sample_flows as flows
from tests.server.mcp.conftest import Agent
from tests.server.outside_flows import chain, fail


async def failed_job(name: str = "bad", tasks: int = 1) -> Job:
    job = await create_job(name, tasks=[fail() for _ in range(tasks)])
    await ajob_test(job)
    return job


async def test_a_failed_job_is_found_with_its_tasks_and_errors(each_agent: Agent) -> None:
    job = await failed_job(tasks=3)
    await failed_job("other")
    await create_job("fine", flows.add(1, 2))
    (_, found) = (await each_agent.ask("find_jobs", status="failed"))["jobs"]
    assert (found["id"], found["name"], "no" in found["error"]) == (str(job.id), "bad", True)
    shown = await each_agent.ask("get_job", job_id=found["id"])
    assert shown == found
    page = await each_agent.ask("list_failed_tasks", job_id=found["id"], limit=2)
    rest = await each_agent.ask("list_failed_tasks", job_id=found["id"], limit=2, before=page["next"])
    tasks = page["tasks"] + rest["tasks"]
    assert rest["next"] is None
    assert len({task["id"] for task in tasks}) == 3
    assert {(task["job_id"], task["status"]) for task in tasks} == {(found["id"], "failed")}
    assert all("ValueError" in task["error"] for task in tasks)
    stats = await each_agent.ask("get_job_stats", job_id=found["id"])
    assert stats["by_status"]["failed"] == 3


async def test_a_job_without_failures_has_none(agent: Agent) -> None:
    job = await create_job("fine", flows.add(1, 2))
    assert await agent.ask("list_failed_tasks", job_id=str(job.id)) == {"tasks": [], "next": None}


async def test_pages_of_jobs_and_of_tasks(agent: Agent) -> None:
    for number in range(3):
        await create_job(f"j{number}", tasks=[flows.add(1, 2), flows.add(3, 4), flows.add(5, 6)])
    first = await agent.ask("find_jobs", limit=2)
    rest = await agent.ask("find_jobs", limit=2, before=first["next"])
    assert [job["name"] for job in first["jobs"] + rest["jobs"]] == ["j2", "j1", "j0"]
    job_id = first["jobs"][0]["id"]
    tasks = await agent.ask("list_job_tasks", job_id=job_id, limit=2, status="PENDING")
    more = await agent.ask("list_job_tasks", job_id=job_id, limit=2, after=tasks["next"])
    assert (len(tasks["tasks"]), len(more["tasks"]), more["next"]) == (2, 1, None)


async def test_a_graph_is_limited_and_says_so(each_agent: Agent) -> None:
    job = await chain.submit(x=1)
    await ajob_test(job)
    whole = await each_agent.whole("get_job_graph", job_id=str(job.id))
    assert len(whole["answer"]["tasks"]) == 3
    assert len(whole["answer"]["dependencies"]) == 2
    assert whole["cut"] == []
    some = await each_agent.whole("get_job_graph", job_id=str(job.id), limit=2)
    assert len(some["answer"]["tasks"]) == 2
    assert "tasks: these are the first 2" in some["cut"][0]


async def test_very_long_errors_are_cut_and_pages_go_on(agent: Agent) -> None:
    job = await create_job("loud", tasks=[flows.fail("x" * 9_000) for _ in range(40)])
    await ajob_test(job)
    whole = await agent.whole("list_failed_tasks", job_id=str(job.id), limit=100)
    seen = list(whole["answer"]["tasks"])
    assert 0 < len(seen) < 40
    assert len(whole["cut"]) == 2
    page = whole["answer"]
    while page["next"]:
        page = await agent.ask("list_failed_tasks", job_id=str(job.id), limit=100, before=page["next"])
        seen += page["tasks"]
    assert len({task["id"] for task in seen}) == len(seen) == 40


async def test_errors_and_results_of_a_job(agent: Agent) -> None:
    bad, good = await create_job("bad", fail()), await create_job("good", flows.add(1, 2))
    await ajob_test(bad)
    await ajob_test(good)
    (error,) = (await agent.ask("get_job_errors", job_id=str(bad.id)))["errors"]
    assert "Traceback" in error["traceback"]
    assert (await agent.ask("get_task", task_id=error["task_id"]))["traceback"] == error["traceback"]
    assert (await agent.ask("get_job_result", job_id=str(good.id)))["result"] == 3
    assert (await agent.refused("get_job_result", job_id=str(bad.id)))["code"] == "Conflict"
