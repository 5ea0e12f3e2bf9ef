"""Tasks: what they are made of, what they refuse, and the names that older code knows."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import InputError, ValueNotPortable
from aaiclick.orchestration.models import Group, Task, TaskStatus
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.tables import tasks

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

# How a task calls what its row calls otherwise.
RENAMED = {"kwargs": "kwargs_json", "result": "result_json", "retry_policy": "retry", "trigger_rule": "when"}


def test_a_task_is_what_it_calls_and_with_what() -> None:
    task = Task("some.module.load", {"x": 3})
    assert (task.entrypoint, task.name, task.status) == ("some.module.load", "load", TaskStatus.PENDING)
    assert task.kwargs == {"x": {"object_type": "pyobj", "value": 3}}
    assert task.result is None
    assert (task.priority, task.critical, task.timeout_s) == (0, True, None)


def test_a_task_may_be_made_as_the_specification_prints_it() -> None:
    task = Task(entrypoint="myapp.func1", kwargs={})
    assert task.kwargs == {}
    assert task.id > 0


def test_a_task_among_the_arguments_is_waited_for() -> None:
    first, group = Task("some.module.first"), Group("g")
    second = Task("some.module.second", {"x": first, "y": [group, {"z": first}]})
    assert {edge.previous for edge in second.incoming} == {first, group}
    assert second.needs_inputs
    assert not first.needs_inputs


def test_a_value_that_cannot_travel_makes_no_task() -> None:
    first = Task("some.module.first")
    with pytest.raises(ValueNotPortable, match="y"):
        Task("some.module.second", {"x": first, "y": object()})
    assert first.outgoing == ()


def test_retries_are_those_given_or_those_of_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = RetryPolicy(max_retries=2, delay_s=5)
    assert Task("a.b").max_retries == 0
    assert Task("a.b", max_retries=3).max_retries == 3
    assert Task("a.b", retry=policy).retry is policy
    assert Task("a.b", retry=policy, max_retries=7).retry == RetryPolicy(max_retries=7, delay_s=5)
    monkeypatch.setenv("WORKER_MAX_RETRIES", "4")
    reset_settings()
    try:
        assert Task("a.b").max_retries == 4
        assert Task("a.b", max_retries=0).max_retries == 0
    finally:
        monkeypatch.undo()
        reset_settings()


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("Task name", {"name": "a\nb"}),
        ("Task name", {"name": "x" * 201}),
        ("priority", {"priority": 2**31}),
        ("priority", {"priority": -(2**31)}),
        ("priority", {"priority": "high"}),
        ("priority", {"priority": True}),
        ("max_retries", {"max_retries": -1}),
        ("retry", {"retry": RetryPolicy(max_retries=1, retry_on=("some.long.name",) * 200)}),
        ("timeout_s", {"timeout_s": 0}),
        ("timeout_s", {"timeout_s": -1}),
        ("timeout_s", {"timeout_s": float("nan")}),
        ("timeout_s", {"timeout_s": float("inf")}),
        ("timeout_s", {"timeout_s": "soon"}),
        ("timeout_s", {"timeout_s": True}),
        ("entrypoint", {"entrypoint": None}),
        ("entrypoint", {"entrypoint": ""}),
        ("entrypoint", {"entrypoint": len}),
        ("entrypoint", {"entrypoint": "mod\0ule.f"}),
        ("entrypoint", {"entrypoint": "mod\ud800ule.f"}),
        ("entrypoint", {"entrypoint": "m" * 500 + ".f"}),
    ],
)
def test_what_no_row_could_hold_is_refused_at_once(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=field):
        Task(**{"entrypoint": "some.module.f", **options})


@pytest.mark.parametrize("priority", [2**31 - 1, -(2**31) + 1])
def test_a_priority_and_its_opposite_are_numbers_of_32_bits(priority: int) -> None:
    assert Task("a.b", priority=priority).priority == priority


# ---------------------------------------------------------------- older names


def test_older_names_still_say_the_same() -> None:
    task = Task("some.module.f", name="f")
    task.error, task.attempt, task.epoch = "ValueError: no", 2, 5
    assert task.error_message == "ValueError: no"
    assert task.retry_count == 2
    assert task.run_epoch == 5
    assert task.description == "f"
    assert task.result_table_id is None
    task.result_json = '{"object_type":"object","table":"t123"}'
    assert task.result_table_id == "t123"
    task.result_json = "[1,2]"
    assert task.result_table_id is None


@pytest.mark.parametrize("name", ["result_table_id", "error_message", "retry_count", "run_epoch", "description"])
def test_older_names_are_for_reading(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Task("a.b"), name, 1)


# ---------------------------------------------------------------- as the database has it


def test_a_task_and_its_row_have_the_same_fields() -> None:
    """Both ways: no column that cannot be read, and none of the task's own that is not stored."""
    task = Task("some.module.f")
    columns = {RENAMED.get(column.name, column.name) for column in tasks.columns}
    assert [name for name in columns if not hasattr(task, name)] == []
    own = {name for kind in (Task, Node) for name in kind.__slots__ if not name.startswith("_")}
    in_memory_only = {"applied", "function", "needs"}
    computed = {"group_id", "idempotency_key", "max_retries"}
    assert own - in_memory_only == columns - computed - {"run_epoch"}


def test_a_task_that_is_read_has_every_column() -> None:
    facts: dict[str, Any] = {column.name: None for column in tasks.columns}
    facts |= {"id": 1, "job_id": 2, "group_id": 3, "parent_task_id": 4, "parent_epoch": 5, "name": "f"}
    facts |= {"entrypoint": "a.f", "kwargs": "{}", "status": "running", "result": "7", "error": "E", "log_path": "l"}
    facts |= {"worker_id": 6, "epoch": 7, "attempt": 8, "crash_count": 9, "lost_count": 10, "unmet_count": 11}
    facts |= {
        "generation": 15,
        "kept": True,
        "cause_id": 16,
        "trigger_rule": "one_failed",
        "awaited_count": 17,
        "amiss": True,
    }
    facts |= {"dependents_count": 12, "gated": True, "needs_inputs": True, "critical": False, "priority": 13}
    facts |= {"reserved_for": 14, "max_retries": 2, "retry_policy": '{"max_retries":2}', "timeout_s": 1.5}
    facts |= dict.fromkeys(("run_after", "created_at", "claimed_at", "started_at", "completed_at"), NOW)
    facts |= {"run_epoch": 7, "stop_when_cut_off": False, "lane": 18}
    facts |= {"cache_policy": "{}", "idempotency_key": "k", "cache_outcome": "hit", "cached_from_id": 19}
    assert None not in facts.values()

    read = Task.from_row(SimpleNamespace(**facts))

    seen = {column: getattr(read, RENAMED.get(column, column)) for column in facts}
    assert seen == facts | {"status": TaskStatus.RUNNING, "retry_policy": RetryPolicy(max_retries=2)}
    assert isinstance(read.status, TaskStatus)
    assert read.applied
    assert read.result == 7
