"""Keys of jobs, which make submitting idempotent; and the precedence of preservation modes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import (
    IdempotencyConflict,
)
from aaiclick.orchestration import (
    Group,
    PreservationMode,
    RegisteredJob,
    Task,
    as_task,
    count_jobs,
    create_job,
    create_task,
    resolve_job_config,
)
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"


# ---------------------------------------------------------------- keys


def graph() -> list[Task | Group]:
    """The same graph each time, with new ids."""
    with Group("parts") as parts:
        inside = as_task(flows.add(1, 2))
    last = as_task(flows.echo({"all": parts, "one": [inside]}))
    inside >> last
    return [parts, last]


async def test_the_same_key_and_graph_are_the_same_job(state: str) -> None:
    first = await create_job("g", tasks=graph(), key="k")
    assert (await create_job("g", tasks=graph(), key="k")).id == first.id
    assert await count_jobs() == 1
    assert first.total_tasks == 2


@pytest.mark.parametrize("change", ["name", "kwargs", "entrypoint", "edge", "group", "more"])
async def test_the_same_key_for_something_else_is_refused(local: Path, change: str) -> None:
    def body(changed: str = "") -> list[Task | Group]:
        group = Group("a" if changed != "group" else "b")
        first = create_task(
            f"{HERE}.{'echo' if changed == 'entrypoint' else 'echo_on_a_thread'}", {"value": 1}, name="x"
        )
        second = create_task(flows.echo, {"value": 2 if changed == "kwargs" else 1}, group_id=group.id)
        if changed != "edge":
            first >> second
        return [first, second, group, *([as_task(flows.nothing())] if changed == "more" else [])]

    await create_job("g", tasks=body(), key="k")
    with pytest.raises(IdempotencyConflict, match="Use another key"):
        await create_job("other" if change == "name" else "g", tasks=body(change), key="k")
    assert await count_jobs() == 1


async def test_jobs_without_a_key_are_never_the_same(local: Path) -> None:
    assert (await create_job("x", flows.plain)).id != (await create_job("x", flows.plain)).id


# ---------------------------------------------------------------- preservation mode


def registered(mode: str | None) -> RegisteredJob:
    facts: dict[str, Any] = dict.fromkeys(RegisteredJob.__dataclass_fields__)
    return RegisteredJob(**(facts | {"preservation_mode": mode}))


def test_the_preservation_mode_comes_from_the_nearest_that_says_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_job_config() is PreservationMode.NONE
    monkeypatch.setenv("AAICLICK_DEFAULT_PRESERVATION_MODE", "FULL")
    reset_settings()
    try:
        assert resolve_job_config() is PreservationMode.FULL
        assert resolve_job_config(None, registered(None)) is PreservationMode.FULL
        assert resolve_job_config(None, registered("none")) is PreservationMode.NONE
        assert resolve_job_config("full", registered("none")) is PreservationMode.FULL
        assert resolve_job_config(PreservationMode.NONE, registered("full")) is PreservationMode.NONE
    finally:
        monkeypatch.undo()
        reset_settings()


def test_arguments_are_stored_as_json_that_says_what_they_are() -> None:
    made = create_task(flows.echo, {"value": (1, b"x")})
    assert json.loads(made.kwargs_json)["value"]["object_type"] == "pyobj"
