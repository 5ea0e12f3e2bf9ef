"""New rows, from what people built in memory: every column is given, or has its default."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Table

from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Group, RunType, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import Plan, Stored, make_plan
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store import tables
from aaiclick.orchestration.store.graphs.inserts import shape_of
from aaiclick.orchestration.store.graphs.new_rows import edge_rows, group_row, insert_job, ready_row, task_row

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
JOB_ID = 7

# What a new row leaves to the defaults: what happens to it later.
LATER = {
    "tasks": {
        *("result", "error", "log_path", "worker_id", "epoch", "attempt", "crash_count", "lost_count"),
        *("run_after", "claimed_at", "started_at", "completed_at", "generation", "cause_id"),
        *("idempotency_key", "cache_outcome", "cached_from_id"),
    },
    "groups": {"failed_count"},
    "dependencies": set(),
    "ready": set(),
}


class Recorder:
    """A session that notes what is inserted."""

    def __init__(self) -> None:
        self.inserted: dict[str, list[dict[str, Any]]] = {}

    async def insert(self, table: Table, rows: list[dict[str, Any]]) -> None:
        self.inserted.setdefault(table.name, []).extend(rows)


def small_graph() -> tuple[Submission, Plan]:
    first = Task("some.module.first", name="first", priority=3)
    with Group("g"):
        second = Task("some.module.second", {"x": first}, max_retries=2, timeout_s=1.5, critical=False)
    first >> second
    submission = gather(JOB_ID, [second])
    return submission, make_plan(shape_of(submission), Stored())


def left_to_defaults(table: Table, row: dict[str, Any]) -> set[str]:
    columns = {column.name for column in table.columns if column.computed is None}
    assert row.keys() <= columns
    missing = columns - row.keys()
    for name in missing:
        column = table.columns[name]
        assert column.nullable or column.server_default is not None, f"{table.name}.{name} has no default"
    return missing


def test_a_row_gives_every_column_that_has_no_default() -> None:
    submission, plan = small_graph()
    rows = {
        "tasks": task_row(submission.tasks[0], plan, JOB_ID, NOW),
        "groups": group_row(submission.groups[0], plan, JOB_ID, NOW),
        "dependencies": edge_rows(submission, plan)[0],
        "ready": ready_row(submission.tasks[0], JOB_ID),
    }
    for name, row in rows.items():
        assert left_to_defaults(tables.metadata.tables[name], row) == LATER[name]


def test_all_rows_of_a_kind_have_their_columns_in_the_same_order() -> None:
    """They are copied in by position."""
    submission, plan = small_graph()
    first, second = (task_row(task, plan, JOB_ID, NOW) for task in submission.tasks)
    assert list(first) == list(second)


def test_a_task_row_holds_the_task_and_its_counters() -> None:
    submission, plan = small_graph()
    first, second = submission.tasks
    row = task_row(second, plan, JOB_ID, NOW)
    assert row["group_id"] == submission.groups[0].id
    assert (row["unmet_count"], row["dependents_count"], row["gated"], row["needs_inputs"]) == (1, 0, False, True)
    assert (row["max_retries"], row["timeout_s"], row["critical"], row["status"]) == (2, 1.5, False, "pending")
    assert RetryPolicy.from_json(row["retry_policy"]) == second.retry
    assert task_row(first, plan, JOB_ID, NOW)["dependents_count"] == 1


def test_equal_edges_are_one_row_and_tell_whether_they_are_met() -> None:
    submission, plan = small_graph()
    assert len(submission.edges) == 2
    (row,) = edge_rows(submission, plan)
    first, second = submission.tasks
    assert row == {
        "previous_id": first.id,
        "previous_type": "task",
        "next_id": second.id,
        "next_type": "task",
        "job_id": JOB_ID,
        "met": False,
    }
    plan.met.add((first.id, second.id))
    assert edge_rows(submission, plan)[0]["met"] is True


@pytest.mark.parametrize("priority", [0, 5, -5, 2**31 - 1, -(2**31) + 1])
def test_the_higher_the_priority_the_nearer_the_front(priority: int) -> None:
    row = ready_row(Task("some.module.f", priority=priority), JOB_ID)
    assert row["rank"] == -priority
    assert -(2**31) <= row["rank"] < 2**31


async def test_a_job_is_stored_with_a_lock_for_its_graph_and_its_first_event() -> None:
    submission, _ = small_graph()
    job = new_job("load", key="k", priority=4, reserved_for=9)
    job.result_json = "[]"
    submission.new_job = job
    recorder = Recorder()
    await insert_job(recorder, submission, NOW)  # type: ignore[arg-type]
    (row,) = recorder.inserted["jobs"]
    assert left_to_defaults(tables.jobs, row) == set()
    assert (row["id"], row["name"], row["key"], row["priority"], row["reserved_for"]) == (job.id, "load", "k", 4, 9)
    assert (row["total_tasks"], row["open_tasks"], row["completed_tasks"], row["result"]) == (2, 2, 0, "[]")
    assert (row["created_at"], row["started_at"], row["run_type"]) == (NOW, None, RunType.MANUAL)
    assert recorder.inserted["graph_locks"] == [{"job_id": job.id}]
    created = {"job_id": job.id, "move": "create", "status": "pending", "at": NOW, "detail": "2"}
    assert recorder.inserted["events"] == [created]
