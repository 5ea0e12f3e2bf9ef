"""Tools that change something: what they do, and that who asked is written down."""

from __future__ import annotations

from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration import (
    as_task,
    create_job,
    get_job,
    get_job_result,
    get_tasks_for_job,
    list_jobs,
    register_worker,
)
from aaiclick.orchestration.access.audit import list_audit
from aaiclick.orchestration.launchers.debug import ajob_test
from tests.orchestration import sample_flows as flows
from tests.server.conftest import FLOWS
from tests.server.mcp.conftest import Agent
from tests.server.outside_flows import fail

OUTSIDE = "tests.server.outside_flows"


async def audit() -> list[tuple[str, str, str | None]]:
    """Who did what, and how it went, the oldest first."""
    return [(each.actor, each.verb, each.outcome) for each in reversed(await list_audit()) if each.verb != "create"]


async def test_a_job_is_cancelled_once(writer: Agent) -> None:
    job = await create_job("sum", flows.add(1, 2))
    operator = writer.of("operator")
    assert await operator.ask("cancel_job", job_id=str(job.id)) == {"cancelled": True}
    assert await operator.ask("cancel_job", job_id=str(job.id)) == {"cancelled": False}
    assert (await operator.refused("cancel_job", job_id="12345"))["code"] == "NotFound"
    told = await audit()
    assert told[0] == ("operator", "cancel", "done")
    assert told[1] == ("operator", "cancel", "nothing: it had ended already")
    assert str(told[2][2]).startswith("refused: NotFound")


async def test_what_failed_runs_again(writer: Agent) -> None:
    task = as_task(fail())
    job = await create_job("bad", task)
    await ajob_test(job)
    given = {"task_ids": [str(task.id)], "dry_run": True}
    assert await writer.ask("retry_job", job_id=str(job.id), dry_run=True) == given
    assert await writer.ask("clear_task", task_id=str(task.id), dry_run=True) == given
    assert await audit() == []
    assert (await writer.ask("retry_job", job_id=str(job.id)))["task_ids"] == [str(task.id)]
    assert (await writer.refused("replay_dead_letter", task_id=str(task.id)))["code"] == "Conflict"
    assert (await writer.ask("clear_task", task_id=str(task.id)))["task_ids"] == [str(task.id)]
    await ajob_test(job)
    assert (await writer.ask("replay_dead_letter", task_id=str(task.id)))["task_ids"] == [str(task.id)]
    assert [verb for _, verb, _ in await audit()] == ["retry", "replay", "clear", "replay"]


async def test_a_job_is_submitted_once_with_a_key(writer: Agent) -> None:
    asked = {"name": "sum", "entrypoint": f"{FLOWS}.add", "kwargs": {"a": 1, "b": 2}, "key": "monday"}
    first = await writer.of("author").ask("submit_job", **asked)
    again = await writer.of("author").ask("submit_job", **asked)
    assert again["id"] == first["id"]
    assert (await writer.refused("submit_job", **asked | {"kwargs": {"a": 5, "b": 6}}))["code"] == "IdempotencyConflict"
    stored = await get_job(int(first["id"]))
    assert stored is not None
    (task,) = await get_tasks_for_job(stored.id)
    assert task.entrypoint == f"@{FLOWS}.add"
    await ajob_test(stored)
    assert await get_job_result(stored.id) == 3
    assert (await audit())[0] == ("author", "submit", "done")


async def test_arguments_that_are_too_large_are_refused(writer: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_VALUE_BYTES_MAX", "1000")
    reset_settings()
    asked = {"name": "echo", "entrypoint": f"{OUTSIDE}.echo", "kwargs": {"value": "x" * 1_000}}
    assert (await writer.refused("submit_job", **asked))["code"] == "ValueTooLarge"
    assert await list_jobs() == []


async def test_a_reference_in_the_arguments_stays_a_dict(writer: Agent) -> None:
    given = {"object_type": "object", "table": "t_1"}
    job = await writer.ask("submit_job", name="echo", entrypoint=f"{OUTSIDE}.echo", kwargs={"value": given})
    stored = await get_job(int(job["id"]))
    assert stored is not None
    await ajob_test(stored)
    assert await get_job_result(stored.id) == given


@pytest.mark.parametrize(
    ("entrypoint", "kwargs"),
    [
        ("os.system", {"command": "id"}),
        (f"{OUTSIDE}.plain", {}),
        ("tests.server.outside_exits.anything", {}),
        (f"{OUTSIDE}.echo; import os", {}),
        (f"{FLOWS}.add", {"a": 1}),
    ],
)
async def test_what_nobody_may_run_from_outside(writer: Agent, entrypoint: str, kwargs: dict[str, Any]) -> None:
    await writer.refused("submit_job", name="x", entrypoint=entrypoint, kwargs=kwargs)
    await writer.refused("register_job", name="x", entrypoint=entrypoint, default_kwargs={"nothing": 1})
    assert (await writer.ask("find_jobs"))["jobs"] == []
    assert (await writer.ask("list_registered_jobs"))["registered_jobs"] == []


@pytest.mark.parametrize("more", [{"name": "\x00"}, {"name": " x"}, {"priority": "high"}, {"force": True}])
async def test_a_job_that_is_none(writer: Agent, more: dict[str, Any]) -> None:
    asked = {"name": "sum", "entrypoint": f"{FLOWS}.add", "kwargs": {"a": 1, "b": 2}}
    assert (await writer.refused("submit_job", **asked | more))["code"] == "InputError"
    assert await audit() == []


async def test_the_catalogue_is_changed_and_run(writer: Agent) -> None:
    entry = await writer.of("author").ask(
        "register_job", name="nightly", entrypoint=f"{FLOWS}.add", default_kwargs={"a": 1, "b": 2}, schedule="0 3 * * *"
    )
    assert (entry["name"], entry["enabled"]) == ("nightly", True)
    operator = writer.of("operator")
    assert (await operator.ask("disable_registered_job", name="nightly"))["enabled"] is False
    assert (await operator.ask("enable_registered_job", name="nightly"))["enabled"] is True
    job = await operator.ask("run_registered_job", name="nightly", kwargs={"b": 5}, key="x")
    assert (await operator.ask("run_registered_job", name="nightly", kwargs={"b": 5}, key="x"))["id"] == job["id"]
    assert (await operator.refused("run_registered_job", name="daily"))["code"] == "NotFound"
    span = {"name": "nightly", "start": "2026-03-01", "end": "2026-03-03"}
    made = await operator.ask("backfill_registered_job", **span, parallel=2)
    assert (made["status"], made["counts"]) == ("running", {"waiting": 2})
    assert (await operator.refused("backfill_registered_job", **span, dry_run=True))["code"] == "InputError"
    assert (await operator.ask("cancel_backfill", backfill_id=made["id"]))["cancelled"] is True
    verbs = [verb for _, verb, _ in await audit()]
    assert verbs == ["register", "disable", "enable", "run", "run", "run", "backfill", "cancel"]


async def test_a_worker_leaves(writer: Agent) -> None:
    worker = str((await register_worker("host", 7)).id)
    assert await writer.ask("drain_worker", worker_id=worker) == {"asked": True}
    assert await writer.ask("stop_worker", worker_id=worker) == {"asked": True}
    assert await writer.ask("stop_worker", worker_id=worker) == {"asked": False}
    assert (await writer.refused("drain_worker", worker_id="12345"))["code"] == "NotFound"
    assert [verb for _, verb, _ in await audit()] == ["drain", "stop", "stop", "drain"]
