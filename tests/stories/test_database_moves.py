"""An installation moves to another database while a job is on the way: that ends there, and nothing runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.store import schema
from tests.support.fleet import LONG, ROOT, Fleet, opened_fleet

WAYS = [("sqlite", "postgres"), ("postgres", "mariadb"), ("mariadb", "sqlite")]

KILLED_ON_THE_WAY = """
import asyncio, os, signal, sys
from aaiclick.orchestration import database_copies
database_copies.PAGE_ROWS = database_copies.PAGE_ROWS_MAX = 3
pages = 0
def seen(table, done, every):
    global pages
    pages += 1
    if pages == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(database_copies.copy_database(sys.argv[1], sys.argv[2], seen=seen))
"""


@pytest.fixture
def urls(request: pytest.FixtureRequest, dialect: str, server: str) -> Iterator[tuple[str, str]]:
    with ExitStack() as stack:
        source = stack.enter_context(request.getfixturevalue(f"{dialect}_databases").migrated())
        yield source, stack.enter_context(request.getfixturevalue(f"{server}_databases").empty())


def kill_on_the_way(fleet: Fleet, urls: tuple[str, str], page: int) -> None:
    command = [sys.executable, "-c", KILLED_ON_THE_WAY, *urls, str(page)]
    done = subprocess.run(command, env=os.environ | fleet.env, cwd=ROOT, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def graph(fleet: Fleet) -> list[Task]:
    """Ten that run at once, ten behind them, and one behind all."""
    first = [fleet.errand("waits", f"first{number}") for number in range(10)]
    second = [fleet.errand("waits", f"second{number}") for number in range(10)]
    last = fleet.errand("waits", "last")
    for before, after in zip(first, second, strict=True):
        before >> after
        after >> last
    return [*first, *second, last]


@pytest.mark.parametrize(("dialect", "server"), WAYS if LONG else WAYS[:1])
async def test_a_job_on_its_way_ends_in_the_new_database(urls: tuple[str, str], tmp_path: Path) -> None:
    async with opened_fleet(urls[0], tmp_path / "old") as old:
        old.let(*(f"first{number}" for number in range(10)))
        (worker,) = await old.workers(1, concurrency=4)
        job = await old.submit(*graph(old))
        await old.noted("began", 4, *(f"second{number}" for number in range(10)))
        refused = old.start("migrate", "copy", "--to", urls[1])
        assert await refused.ended() == 5, refused.said()
        assert f"worker {(await old.session_of(worker))} " in refused.said()

        worker.signal(signal.SIGTERM)  # it gives back what has begun
        await worker.ended()
        for page in (5, 25):
            kill_on_the_way(old, urls, page)
        copied = old.start("migrate", "copy", "--to", urls[1])
        assert await copied.ended() == 0, copied.said()
        assert "rows are the same in" in copied.said()
        before = {name: row.status for name, row in (await old.tasks(job)).items()}

        async with opened_fleet(urls[1], tmp_path / "new") as new:
            new.home = old.home  # the same place for bodies and logs
            new.env |= {name: old.env[name] for name in ("AAICLICK_LOCAL_ROOT", "AAICLICK_LOG_DIR")}
            assert {name: row.status for name, row in (await new.tasks(job)).items()} == before
            await new.workers(1, concurrency=4)
            new.let()
            assert (await new.end_of(job)).status == "completed"
            began = [note.name for note in old.notes("began")]
            assert all(began.count(f"first{number}") == 1 for number in range(10)), "what had ended was run again"
            assert began.count("last") == 1
            later = await new.submit(new.errand("waits", "later"))
            assert later.id > job.id
            assert (await new.end_of(later)).status == "completed"
    assert await schema.current(urls[1]) == schema.HEAD
