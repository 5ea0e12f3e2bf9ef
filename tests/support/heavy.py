"""Bodies with large values whose process is killed on the way from the value to its report: once for each mark."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, NoReturn

from aaiclick.data.tables import blobs
from aaiclick.orchestration import job, task
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.execution.runs import run_data


@task
def heavy(n: int, dies: str, mark: str) -> list[int]:
    """A large list; the first time, the process dies once the table is made, or written, or as it is reported."""
    if dies and not Path(mark).exists():
        Path(mark).touch()
        _arm(dies)
    return list(range(n))


@task
def summed(values: list[int]) -> int:
    return sum(values)


@job
def sums(n: int, deaths: list[str], place: str) -> Any:
    """What is summed nobody needs afterwards; the last one is the job's result."""
    made = [heavy(n, dies, f"{place}/{dies}") for dies in deaths]
    return {"sums": [summed(each) for each in made], "last": made[-1]}


def _arm(dies: str) -> None:
    async def write(client: Any, table: str, text: str, **facts: Any) -> None:
        used: Any = _Deadly(client) if dies == "made" else client
        await blobs.write_blob(used, table, text, **facts)
        _die()

    async def report(*_: object) -> NoReturn:
        _die()

    if dies == "reported":
        DirectCoordinator.report = report  # type: ignore[assignment]
    else:
        vars(run_data)["write_blob"] = write


class _Deadly:
    """A client that makes tables, and dies of the first row."""

    def __init__(self, client: Any) -> None:
        self.command, self.tables = client.command, client.tables

    async def insert(self, *_: object) -> NoReturn:
        _die()


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody is here any more")
