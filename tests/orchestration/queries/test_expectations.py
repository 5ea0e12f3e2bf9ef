"""What tasks expected of their data and did not find is told with the job, the task and the metrics."""

from __future__ import annotations

import pytest

from aaiclick.data import data_context
from aaiclick.orchestration import ajob_test, create_job, get_job_result, get_tasks_for_job
from aaiclick.orchestration.queries.expectations import list_job_expectations, list_task_expectations
from aaiclick.orchestration.queries.metrics import collect_metrics
from tests.orchestration import data_flows as flows
from tests.support.front_door import local

__all__ = ["local"]

UNIQUE = "unique id (once each): 2 of 3 rows, such as id=2"
BETWEEN = "between price (at least 0): 1 of 3 rows, such as price=-1"


@pytest.mark.usefixtures("local")
async def test_a_warning_is_told_and_the_job_completes() -> None:
    job = await ajob_test(await create_job("warned", flows.expecting("warn")))
    assert job.status == "completed"
    async with data_context():
        bad = await get_job_result(job)
        assert await bad.count() == 3
    found = await list_job_expectations(job.id)
    assert [(each.outcome, each.line) for each in found] == [("warned", UNIQUE), ("warned", BETWEEN)]
    assert await list_task_expectations(found[0].task_id) == found
    assert dict((await collect_metrics()).counters)["expectations_warned_total"] == 2


@pytest.mark.usefixtures("local")
async def test_a_failure_fails_its_task_and_says_what_was_found() -> None:
    job = await ajob_test(await create_job("broken", flows.expecting("fail")))
    (task,) = await get_tasks_for_job(job.id)
    assert (str(task.status), task.error) == (
        "failed",
        f"ExpectationFailed: The data is not as expected: {UNIQUE}; {BETWEEN}.",
    )
    assert [each.outcome for each in await list_task_expectations(task.id)] == ["failed", "failed"]
    assert dict((await collect_metrics()).counters)["expectations_failed_total"] == 2
    assert await list_task_expectations(task.id + 1) == []
