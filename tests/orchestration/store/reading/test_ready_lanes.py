"""Lanes with ready tasks, found without reading these."""

from __future__ import annotations

from aaiclick.orchestration.store.reading.ready_lanes import LaneHead, find_lanes
from tests.support.band import band
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def find(band: Orchestra, reserved_for: int = 0) -> list[LaneHead]:
    return await band.database.read(lambda session: find_lanes(session, reserved_for))


async def test_each_lane_is_found_with_its_first_task(band: Orchestra) -> None:
    assert await find(band) == []
    made = {}
    for lane, priority in ((7, 1), (7, 5), (7, 3), (3, 0), (0, 9), (900_000, -2)):
        task = make("t", priority=priority)
        task.lane = lane
        job = await band.submit(task)
        made[lane, priority] = job.id
    expected = [(3, 0), (7, 5), (900_000, -2)]
    assert sorted(await find(band)) == [LaneHead(lane, -priority, made[lane, priority]) for lane, priority in expected]


async def test_what_is_reserved_is_found_by_whom_it_is_reserved_for(band: Orchestra) -> None:
    task = make("t")
    task.lane = 4
    job = await band.submit(task)
    await band.coordinator.reserve(job.id, 77)
    assert await find(band) == []
    assert [head.lane for head in await find(band, 77)] == [4]


async def test_only_plain_tasks_are_no_lane(band: Orchestra) -> None:
    await band.submit(make("t"), make("t"))
    assert await find(band) == []


async def test_the_most_urgent_of_several_priorities_is_the_head(band: Orchestra) -> None:
    made = [make("t", priority=priority) for priority in (3, -1, 9, 0)]
    for task in made:
        task.lane = 5
    job = await band.submit(*made)
    assert await find(band) == [LaneHead(5, -9, job.id)]
    await band.claim(1, lanes=(5,))
    assert await find(band) == [LaneHead(5, -3, job.id)]


async def test_more_lanes_than_a_database_recurses_by_itself(band: Orchestra) -> None:
    made = [make("t") for _ in range(1_100)]
    for lane, task in enumerate(made, 1):
        task.lane = lane
    await band.submit(*made)
    assert sorted(head.lane for head in await find(band)) == [*range(1, 1_101)]
