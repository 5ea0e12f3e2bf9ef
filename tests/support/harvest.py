"""A workflow with Objects that runs anywhere: in `job_test`, in a local fleet, on workers and servers.

With a place, each part notes there that it began, and waits for a file `go` before it reads what it made.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from aaiclick.data import Object, create_object_from_value
from aaiclick.orchestration import RetryPolicy, job, task

PAUSE_S = 0.02
AGAIN = RetryPolicy(max_retries=5, delay_s=0.1, jitter=False)
"""A query that was under way when the engine died fails, and is tried again with its task."""


async def meet(place: Path, field: int) -> None:
    with open(place / "notes", "ab", buffering=0) as notes:  # noqa: ASYNC230 (one short line)
        notes.write(f"pick{field} began {os.getpid()}\n".encode())
    while not (place / "go").exists():  # noqa: ASYNC110 (what is waited for is a file)
        await asyncio.sleep(PAUSE_S)


@task(retry=AGAIN)
async def pick(field: int, place: str) -> Any:
    crates = await create_object_from_value({"fruit": ["fig", "lime", "fig"], "crates": [field, 10 * field, 1]})
    if place:
        await meet(Path(place), field)
    assert await crates.count() == 3
    return crates


@task(retry=AGAIN)
async def weigh(crates: Object) -> Any:
    return crates.group_by("fruit").sum("crates").order_by("fruit")


@task(retry=AGAIN)
async def report(weights: list[Any]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in weights:
        found = await each.data()
        for fruit, crates in zip(found["fruit"], found["crates"], strict=True):
            total[fruit] = total.get(fruit, 0) + crates
    return total


@job
def harvest(fields: int, place: str = "") -> Any:
    return report([weigh(pick(field, place)) for field in range(fields)])


def expected(fields: int) -> dict[str, int]:
    total = sum(range(fields))
    return {"fig": total + fields, "lime": 10 * total}
