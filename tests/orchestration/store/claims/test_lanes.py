"""Lanes: needs that get a number, and tasks that come back into theirs, whatever became of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select

from aaiclick.orchestration.models import Claim, Job, Task
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.lanes import intern_lanes
from aaiclick.orchestration.store.moves import queue, repairs
from aaiclick.orchestration.store.reading.pending import read_facts
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import ready
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, expire, make

__all__ = ["band"]

GPU, ZONE = {"gpu": 1, "labels": {"rack": "7", "zone": "a"}}, {"zone": "ü\x00"}


async def intern(band: Orchestra, *needs: dict[str, Any]) -> list[int]:
    return await band.database.transact(lambda session: intern_lanes(session, needs))


# ---------------------------------------------------------------- numbers


async def test_the_same_needs_are_one_lane_for_ever(band: Orchestra) -> None:
    gpu, zone, again = await intern(band, GPU, ZONE, {"labels": {"zone": "a", "rack": "7"}, "gpu": 1})
    assert gpu == again
    assert len({gpu, zone, PLAIN}) == 3
    assert await intern(band, ZONE, {"gpu": 2}, GPU) == [zone, max(gpu, zone) + 1, gpu]
    assert await intern(band) == []


async def test_to_need_nothing_is_the_plain_lane_and_has_no_row(band: Orchestra) -> None:
    assert await intern(band, {}, {}) == [PLAIN, PLAIN]
    assert await band.scalar(select(func.count()).select_from(lanes)) == 0


async def test_many_needs_are_interned_at_a_time(band: Orchestra) -> None:
    found = await intern(band, *({"slot": number} for number in range(2500)))
    assert len(set(found)) == 2500
    assert await intern(band, {"slot": 2499}, {"slot": 0}) == [found[2499], found[0]]


async def test_several_who_intern_the_same_at_once_get_the_same_lanes(band: Orchestra) -> None:
    """Also those who name them in another order: none waits for another that waits for it."""
    needs = [{"gpu": number} for number in range(8)]
    orders = [needs, needs[::-1], needs[4:] + needs[:4], needs[2:6]]
    found = await asyncio.gather(*(intern(band, *order) for order in orders * 2))
    told = [
        dict(zip((each["gpu"] for each in order), lane, strict=True))
        for order, lane in zip(orders * 2, found, strict=True)
    ]
    assert all(lane == told[0][gpu] for each in told for gpu, lane in each.items())
    assert await band.scalar(select(func.count()).select_from(lanes)) == 8


@SERVERS
@pytest.mark.parametrize("commits", [True, False], ids=["commits", "rolls back"])
async def test_a_lane_that_another_is_about_to_make_is_waited_for(band: Orchestra, commits: bool) -> None:
    mine: list[int] = []
    others: list[asyncio.Task[list[int]]] = []

    async def first(session: Session) -> None:
        mine.extend(await intern_lanes(session, [GPU]))
        others.append(asyncio.create_task(intern(band, ZONE, GPU)))
        await band.until_waiting()
        if not commits:
            raise SystemError("this one is not to be")

    try:
        await band.database.transact(first)
    except SystemError:
        assert not commits
    zone, gpu = await others[0]
    assert (gpu == mine[0]) is commits
    assert await intern(band, GPU, ZONE) == [gpu, zone]


# ---------------------------------------------------------------- tasks


async def submit_into(band: Orchestra, lane: int, *nodes: Task, **options: Any) -> Job:
    for node in nodes:
        node.lane = lane
    return await band.submit(*nodes, **options)


async def claim_one(band: Orchestra, lane: int) -> Claim:
    """The task of that lane, which no worker of another lane is given."""
    assert await band.claim() == []
    assert await band.claim(lanes=(lane + 1, PLAIN)) == []
    (claim,) = await band.claim(lanes=(lane,), begins=1)
    return claim


async def test_a_task_comes_back_into_its_lane_however_it_comes_back(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    task = make("t", retry=RetryPolicy(1, delay_s=0))
    await submit_into(band, lane, task)
    await band.coordinator.release(band.worker, [await claim_one(band, lane)])
    await band.fail(await claim_one(band, lane))
    await band.complete(await claim_one(band, lane))
    await band.coordinator.clear(task.id)
    await claim_one(band, lane)
    await band.coordinator.clear(task.id)
    await claim_one(band, lane)
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    assert await band.database.transact(lambda session: recoveries.recover_claims(session, 9)) == 1
    band.worker = (await band.coordinator.register(hostname="there", pid=2)).id
    assert (await band.task(task)).lane == lane
    await claim_one(band, lane)
    assert await band.violations() == []


async def test_a_delayed_task_is_promoted_into_its_lane(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    await submit_into(band, lane, make("t", retry=RetryPolicy(1, delay_s=60)))
    await band.fail(await claim_one(band, lane))
    await band.let_time_pass()
    assert await band.database.transact(queue.promote_due) == 1
    await claim_one(band, lane)


async def test_a_task_that_waited_for_another_is_ready_in_its_lane(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    first, second = make("first"), make("second")
    first >> second
    second.lane = lane
    await band.submit(first, second)
    await band.complete(*(await band.claim()))
    assert (await claim_one(band, lane)).name == "second"


async def test_a_reserved_job_keeps_its_lanes(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    job = await submit_into(band, lane, make("t"))
    await band.submit(make("plain"), priority=-1)
    await band.coordinator.reserve(job.id, 77)
    assert [claim.name for claim in await band.claim(lanes=(lane, PLAIN))] == ["plain"]
    assert await band.claim(reserved_for=77) == []
    assert [claim.name for claim in await band.claim(reserved_for=77, lanes=(PLAIN, lane))] == ["t"]
    assert await band.violations() == []


async def test_what_is_cancelled_leaves_its_lane(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    job = await submit_into(band, lane, make("a"), make("b", priority=1))
    await band.submit(make("plain"))
    await band.coordinator.cancel(job.id)
    assert await band.ready_names() == ["plain"]
    assert await band.violations() == []


async def test_a_task_that_stands_in_the_wrong_lane_is_mended(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    job = await submit_into(band, lane, make("t"))
    await band.database.transact(lambda session: session.run(ready.update().values(lane=0)))
    assert await band.violations() != []
    words = await band.database.transact(lambda session: repairs.repair_job(session, job.id))
    assert [word.partition(" was ")[2] for word in words] == ["in the queue", "not in the queue"]
    assert (await claim_one(band, lane)).name == "t"


async def test_a_job_whose_tasks_stand_in_their_lane_is_not_stuck(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    await submit_into(band, lane, make("t"))
    assert await band.database.read(lambda session: repairs.stuck_jobs(session, 9)) == []


async def test_those_before_a_task_are_those_of_its_lane(band: Orchestra) -> None:
    (lane,) = await intern(band, GPU)
    await band.submit(*(make("plain", priority=9) for _ in range(5)))
    first, task = make("first"), make("second")
    await submit_into(band, lane, first, task)
    facts = await band.database.read(lambda session: read_facts(session, task.id))
    assert facts is not None
    assert (facts.in_queue, facts.before) == (True, 1)
