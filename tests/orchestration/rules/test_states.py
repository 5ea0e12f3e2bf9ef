"""The states and the only moves between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.orchestration.rules.states import (
    ENDED_JOB,
    ENDED_TASK,
    JOB_MOVES,
    LIVE_TASK,
    PRESERVATION_FULL,
    PRESERVATION_NONE,
    TASK_MOVES,
    JobStatus,
    RunType,
    TaskStatus,
    WorkerStatus,
    job_sources,
    job_target,
    sources,
    states_markdown,
    target,
)

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "states.md"
T = TaskStatus


def test_the_states_are_those_of_the_specification_in_lower_case() -> None:
    assert [status.name for status in JobStatus] == ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
    assert [status.name for status in TaskStatus] == [
        *("PENDING", "CLAIMED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "PENDING_CLEANUP"),
        *("UPSTREAM_FAILED", "SKIPPED"),
    ]
    assert [status.name for status in WorkerStatus] == ["ACTIVE", "IDLE", "STOPPING", "STOPPED"]
    assert [kind.name for kind in RunType] == ["SCHEDULED", "MANUAL"]
    for member in (*JobStatus, *TaskStatus, *WorkerStatus, *RunType):
        assert member.value == member.name.lower()
    assert (PRESERVATION_NONE, PRESERVATION_FULL) == ("none", "full")


@pytest.mark.parametrize(
    ("move", "start", "end"),
    [
        ("claim", {T.PENDING}, T.CLAIMED),
        ("release", {T.CLAIMED, T.RUNNING}, T.PENDING),
        ("start", {T.CLAIMED}, T.RUNNING),
        ("complete", {T.CLAIMED, T.RUNNING}, T.COMPLETED),
        ("fail", {T.CLAIMED, T.RUNNING}, T.PENDING_CLEANUP),
        ("recover", {T.CLAIMED, T.RUNNING}, T.PENDING_CLEANUP),
        ("retry", {T.PENDING_CLEANUP}, T.PENDING),
        ("give_up", {T.PENDING_CLEANUP}, T.FAILED),
        ("doom", {T.PENDING}, T.UPSTREAM_FAILED),
        ("skip", {T.PENDING}, T.SKIPPED),
        ("leave_out", {T.CLAIMED, T.RUNNING}, T.SKIPPED),
        ("cancel", {T.PENDING, T.CLAIMED, T.RUNNING, T.PENDING_CLEANUP}, T.CANCELLED),
        ("clear", set(T), T.PENDING),
    ],
)
def test_a_task_moves_as_the_architecture_says(move: str, start: set[TaskStatus], end: TaskStatus) -> None:
    assert sources(move) == start
    assert target(move) is end


def test_there_are_no_other_moves() -> None:
    assert len(TASK_MOVES) == 13
    assert list(JOB_MOVES) == ["start", "complete", "fail", "cancel", "reactivate"]
    with pytest.raises(KeyError):
        sources("teleport")


def test_only_clear_leaves_an_ended_task_and_only_reactivate_an_ended_job() -> None:
    assert [name for name in TASK_MOVES if sources(name) & ENDED_TASK] == ["clear"]
    assert [name for name in JOB_MOVES if job_sources(name) & ENDED_JOB] == ["reactivate"]


def test_every_state_is_reached_and_every_state_that_has_not_ended_is_left() -> None:
    assert {target(name) for name in TASK_MOVES} == set(T)
    for status in set(T) - ENDED_TASK:
        assert [name for name in TASK_MOVES if status in sources(name) and name != "clear"]
    assert {job_target(name) for name in JOB_MOVES} == set(JobStatus) - {JobStatus.PENDING}


def test_live_tasks_are_those_that_a_worker_holds() -> None:
    assert {T.CLAIMED, T.RUNNING} == LIVE_TASK
    assert not LIVE_TASK & ENDED_TASK


def test_the_tables_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        TASK_MOVES["claim"] = TASK_MOVES["clear"]  # type: ignore[index]


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == states_markdown(), (
        "run: python -m aaiclick.orchestration.rules.states > docs/reference/states.md"
    )
