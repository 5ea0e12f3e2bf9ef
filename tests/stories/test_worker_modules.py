"""Where a worker finds the user's modules, and what it does about those that misbehave."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.store import tables
from tests.support.fleet import Fleet, fleet

__all__ = ["fleet"]

HIDDEN = ("json", "typing", "asyncio", "re", "inspect", "logging", "sqlite3", "msgspec", "sqlalchemy", "sitecustomize")
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
@pytest.mark.parametrize("named", [True, False])
async def test_no_module_of_the_users_hides_one_of_pythons_own(fleet: Fleet, tmp_path: Path, named: bool) -> None:
    """Not in the directory that is named, not in the current one, and that is not searched where another is named."""
    here, app, marks = tmp_path / "here", tmp_path / "app", tmp_path / "marks"
    marks.mkdir()
    for place in (here, app):
        place.mkdir()
        for name in HIDDEN:
            (place / f"{name}.py").write_text(f"open({str(marks)!r} + '/' + __name__, 'w').close()\n")
    (app if named else here).joinpath("own.py").write_text("import sys, json\ndef body():\n    return sys.path\n")
    if named:
        (here / "other.py").write_text("def body():\n    return 1\n")
    for executor in ("process", "inline"):
        wanted = ("own", "other") if named else ("own",)
        options = ("--executor", executor, "--max-tasks", str(len(wanted)), *(("--app-dir", str(app)) if named else ()))
        worker = fleet.start("worker", "start", *options, program=("-P", "-m", "aaiclick"), cwd=here)
        job = await fleet.submit(*(Task(f"{name}.body", name=name, max_retries=0, critical=False) for name in wanted))
        await fleet.end_of(job)
        places = (await fleet.results(job))["own"]
        assert places[-1] == str(app if named else here)
        assert (str(here) in places) is not named
        assert await worker.ended() == 0, worker.said()
    assert list(marks.iterdir()) == []


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_a_directory_that_is_not_there_is_refused(fleet: Fleet) -> None:
    refused = fleet.start("worker", "start", "--app-dir", str(fleet.home / "nowhere"))
    assert await refused.ended() == 2
    assert "the directory does not exist" in refused.said()
