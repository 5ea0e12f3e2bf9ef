"""Limits of time, and what is tried again: as real workers do it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.rules.retries import RetryPolicy
from tests.support.fleet import Fleet, all_gone, fleet

__all__ = ["fleet"]


async def test_times_that_are_up_and_what_is_tried_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKER_MAX_RETRIES", "2")  # tasks are made here
    reset_settings()
    await fleet.workers(1, concurrency=4)
    late = await fleet.submit(fleet.errand("spins", "late"), fleet.errand("waits", "late2"), timeout_s=1.0)
    soon: Any = {"delay_s": 0.2, "jitter": False}
    cases: dict[str, Task] = {
        "spins": fleet.errand("spins", timeout_s=0.5, max_retries=0),
        "twice": fleet.errand("fails", "twice", kwargs={"times": 2}, retry=RetryPolicy(max_retries=2, **soon)),
        "by setting": fleet.errand("fails", "by_setting", kwargs={"times": 1}),
        "too often": fleet.errand("fails", "too_often", kwargs={"times": 9}, retry=RetryPolicy(max_retries=1, **soon)),
        "on": fleet.errand("fails", "on", kwargs={"times": 9}, retry=RetryPolicy(5, **soon, retry_on=("KeyError",))),
        "not on": fleet.errand(
            "fails", "not_on", kwargs={"times": 9}, retry=RetryPolicy(5, **soon, no_retry_on=("ValueError",))
        ),
        "missing": Task("errands.nothing_of_this_name", name="missing", max_retries=5),
        "no module": Task("no_such_module.body", name="no_module", max_retries=5),
    }
    job = await fleet.submit(*cases.values())
    assert (await fleet.end_of(job)).status == "failed"
    rows = {row.id: row for row in (await fleet.tasks(job)).values()}
    found = {case: (rows[task.id].status, await fleet.outcomes(task)) for case, task in cases.items()}
    once = ("failed", ["failed"])
    assert found == {
        "spins": once,
        "twice": ("completed", ["failed", "failed", "completed"]),
        "by setting": ("completed", ["failed", "completed"]),
        "too often": ("failed", ["failed", "failed"]),
        "on": once,
        "not on": once,
        "missing": once,
        "no module": once,
    }
    assert "TaskTimeout" in rows[cases["spins"].id].error
    assert "no_such_module" in rows[cases["no module"].id].error

    ended = await fleet.end_of(late)
    assert (ended.status, "JobTimeout" in (ended.error or "")) == ("failed", True)
    assert set((await fleet.statuses(late)).values()) == {"cancelled"}
    await all_gone(note.pid for note in fleet.notes("began") if note.name in ("late", "late2", "spins"))
    assert not fleet.notes("ended")
    assert os.listdir(fleet.home / "logs")
