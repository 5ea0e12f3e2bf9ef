"""Where a worker finds the user's modules, and what it does about those that misbehave."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.store import tables
from tests.support.fleet import Fleet, fleet

__all__ = ["fleet"]

SUBMITS = """
from aaiclick.orchestration import job, task

@task
def body():
    return 1

@job
def flow():
    return body()

flow()
"""


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"], indirect=True)
async def test_modules_are_found_in_the_current_directory(fleet: Fleet, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "own.py").write_text("def body():\n    return 'found'\n")
    (here / "submits.py").write_text(SUBMITS)
    (here / "breaks.py").write_text("raise RuntimeError('at import')\n")
    for executor in ("process", "inline"):
        worker = fleet.start("worker", "start", "--executor", executor, "--max-tasks", "3", cwd=here)
        modules = ("own", "submits", "breaks")
        tasks = [Task(f"{module}.body", name=module, max_retries=3, critical=False) for module in modules]
        job = await fleet.submit(*tasks)
        assert (await fleet.end_of(job)).status == "completed"
        assert await fleet.results(job) == {"own": "found"}
        rows = await fleet.tasks(job)
        assert {name: row.status for name, row in rows.items()} == {
            "own": "completed",
            "submits": "failed",
            "breaks": "failed",
        }
        assert {row.epoch for row in rows.values()} == {1}, "neither is tried again"
        assert "SubmitDuringImport" in rows["submits"].error
        assert "at import" in rows["breaks"].error
        assert await worker.ended() == 0, worker.said()
    assert await fleet.scalar(select(func.count()).select_from(tables.jobs)) == 2, "nothing was submitted"


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_a_directory_that_is_not_there_is_refused(fleet: Fleet) -> None:
    refused = fleet.start("worker", "start", "--app-dir", str(fleet.home / "nowhere"))
    assert await refused.ended() == 2
    assert "there is no such directory" in refused.said()
