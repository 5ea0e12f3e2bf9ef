"""GPUs of real workers: who held which is told by locks on files, which the system keeps and we do not."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import select

from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from tests.support.fleet import Fleet, all_gone, eventually, fleet

__all__ = ["fleet"]

LONG = "TEST_LONG" in os.environ
SESSION = {"AAICLICK_SESSION_SECONDS": "6"}  # of a worker that is killed: how long the others wait
CALM = {"AAICLICK_SESSION_SECONDS": "30"}
BOX = ("--node-name", "box", "--resource", "gpu=2")
everywhere = pytest.mark.parametrize(
    "dialect", ["sqlite", "postgres", "mariadb"] if LONG else ["sqlite"], indirect=True
)


@everywhere
async def test_gpus_of_a_killed_worker_are_used_again_and_never_by_two(fleet: Fleet) -> None:
    """kill -9 while two bodies hold both GPUs, and a third is told to stop: nobody begins beside a living body."""
    fleet.env |= SESSION
    (doomed,) = await fleet.workers(1, *BOX, concurrency=4)
    job = await fleet.submit(*(fleet.errand("holds", f"hold{n}", resources={"gpu": 1}) for n in range(4)))
    began = await fleet.noted("began", 2)
    (heir,) = await fleet.workers(1, *BOX, concurrency=4, **CALM)
    family = doomed.family()
    doomed.kill()
    await all_gone(family)
    await fleet.noted("began", 4)
    assert len(fleet.notes("began")) == 4, "two at a time, before and after"
    assert {note.pid for note in began}.isdisjoint(note.pid for note in fleet.notes("began")[2:])
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    assert not [note for note in fleet.notes() if note.what.startswith(("overlap", "sees"))]
    for index in (0, 1):
        assert len(fleet.notes(f"gpu-{index}")) >= 3
    assert await fleet.rows(select(resource_grants)) == []
    assert heir.alive


@everywhere
async def test_a_cancelled_body_keeps_its_gpu_until_it_is_dead(fleet: Fleet) -> None:
    """It ignores what it is told until the grace is over; its successor begins after that, and not before."""
    fleet.env |= CALM | {"AAICLICK_CANCEL_GRACE_SECONDS": "1"}
    await fleet.workers(1, "--node-name", "box", "--resource", "gpu=1", concurrency=2)
    first = await fleet.submit(fleet.errand("holds", "first", resources={"gpu": 1}))
    await fleet.noted("began", 1)
    second = await fleet.submit(fleet.errand("holds", "second", resources={"gpu": 1}))
    await fleet.coordinator.cancel(first.id)
    await fleet.noted("began", 2)
    fleet.let()
    assert (await fleet.end_of(second)).status == "completed"
    assert not [note for note in fleet.notes() if note.what.startswith(("overlap", "sees"))]

    async def all_free() -> bool:
        return await fleet.rows(select(resource_grants)) == []

    await eventually(all_free)
