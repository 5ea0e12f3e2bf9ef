"""Cancelling, clearing and trying again while bodies run: old ones die, their slots are free, new ones count."""

from __future__ import annotations

from tests.support.fleet import Fleet, all_gone, fleet

__all__ = ["fleet"]

BODIES = ("waits", "waits_async", "spins", "ignores")


async def test_whatever_a_body_does_cancelling_ends_it(fleet: Fleet) -> None:
    (worker,) = await fleet.workers(1, concurrency=4)
    job = await fleet.submit(*(fleet.errand(body) for body in BODIES))
    began = {note.name: note.pid for note in await fleet.noted("began", 4)}
    grandchildren = [note.pid for note in fleet.notes("grandchild")]
    assert await fleet.coordinator.cancel(job.id)
    assert set((await fleet.statuses(job)).values()) == {"cancelled"}
    await all_gone([began["waits"], began["spins"], began["ignores"], *grandchildren])
    await fleet.noted("cancelled", 1, "waits_async")
    assert (await fleet.end_of(job)).status == "cancelled"

    after = await fleet.submit(*(fleet.errand("waits", f"after{number}") for number in range(4)))
    await fleet.noted("began", 4, *(f"after{number}" for number in range(4)))  # all four slots are free
    fleet.let()
    assert (await fleet.end_of(after)).status == "completed"
    assert worker.alive
    assert not fleet.notes("ended") or {note.name[:5] for note in fleet.notes("ended")} == {"after"}


async def test_a_task_that_is_cleared_while_it_runs_runs_anew(fleet: Fleet) -> None:
    await fleet.workers(1, concurrency=2)
    first, failing = fleet.errand("waits", "first"), fleet.errand("fails", kwargs={"times": 1})
    after = fleet.errand("waits", "after")
    first >> after
    job = await fleet.submit(first, after, failing)
    (old,) = await fleet.noted("began", 1, "first")
    assert set(await fleet.coordinator.clear(first.id)) == {first.id, after.id}
    await all_gone([old.pid])
    _, new = await fleet.noted("began", 2, "first")
    fleet.let("first")
    await fleet.noted("began", 1, "after")
    assert await fleet.coordinator.retry_failed(job.id) == [failing.id]  # while the others of the job go on
    await fleet.noted("began", 2, "fails")
    fleet.let()
    assert (await fleet.end_of(job)).status == "completed"
    results = await fleet.results(job)
    assert (results["first"], results["fails"]) == (new.pid, 2)
    assert await fleet.outcomes(first) == ["cleared", "completed"]
    assert [note.pid for note in fleet.notes("ended") if note.name == "first"] == [new.pid]
