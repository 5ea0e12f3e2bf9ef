"""Which lanes a worker is given tasks of: those that its node meets, the most urgent first, and wishes for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from aaiclick.orchestration.coordinator import lane_choice
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import CacheKey, Claim, Task
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.placement import PlacementConstraints
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.values.encoding import encode_value
from aaiclick.orchestration.store.nodes.states import set_state
from aaiclick.orchestration.store.tables import tasks, workers
from tests.support.band import SERVERS
from tests.support.clocks import HandClock
from tests.support.orchestra import Orchestra, done, make, orchestra

GPU, BIG = "gpu == nvidia", "memory_gb >= 32"


class Stage:
    """An orchestra whose coordinator goes by a clock that is turned by hand, and workers on nodes."""

    def __init__(self, band: Orchestra) -> None:
        self.band = band
        self.clock = HandClock()
        band.coordinator = self.process()

    def process(self) -> DirectCoordinator:
        """A coordinator that remembers nothing yet: that of another process."""
        return DirectCoordinator(self.band.database, clock=self.clock, draw=lambda: 0.5)

    async def worker(self, name: str, **has: Any) -> int:
        node = NodeDescription(name, capabilities=has)
        return (await self.band.coordinator.register(hostname="h", pid=2, node=node)).id

    async def claim(self, worker: int, limit: int = 9) -> list[str]:
        return [claim.name for claim in await self.claims(worker, limit)]

    async def claims(self, worker: int, limit: int = 9) -> list[Claim]:
        return await self.band.coordinator.claim(worker, limit=limit, lanes=None)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Stage]:
    async with orchestra(migrated_sql_url) as band:
        yield Stage(band)


async def test_a_worker_gets_what_its_node_meets_and_plain_tasks(stage: Stage) -> None:
    await stage.band.submit(make("gpu", placement=GPU), make("big", placement=BIG), make("plain"))
    small = await stage.worker("small", gpu="nvidia", memory_gb=16)
    assert sorted(await stage.claim(small)) == ["gpu", "plain"]
    assert await stage.claim(await stage.worker("large", memory_gb=64)) == ["big"]
    assert await stage.band.violations() == []


async def test_a_worker_without_a_node_gets_plain_tasks_only(stage: Stage) -> None:
    await stage.band.submit(make("gpu", placement=GPU), make("plain"))
    assert await stage.claim(stage.band.worker) == ["plain"]


async def test_the_most_urgent_comes_first_whatever_it_needs(stage: Stage) -> None:
    worker = await stage.worker("box", gpu="nvidia", memory_gb=64)
    for number in range(6):
        placement = (None, GPU, BIG)[number % 3]
        await stage.band.submit(make(str(number), placement=placement), priority=number)
    found: list[str] = []
    while names := await stage.claim(worker, 1):
        found += names
    assert found[0] in ("3", "5")  # the plain lane is asked first, as long as nothing is known of it
    assert sorted(found[1:], reverse=True) == [*found[1:]] or len(found) == 6


async def test_plain_tasks_do_not_keep_others_waiting_nor_others_them(stage: Stage) -> None:
    worker = await stage.worker("box", gpu="nvidia")
    await stage.band.submit(*(make("plain") for _ in range(4)), priority=1)
    await stage.band.submit(*(make("gpu", placement=GPU) for _ in range(4)), priority=2)
    await stage.band.submit(*(make("late") for _ in range(4)))
    found = [(await stage.claim(worker, 1))[0] for _ in range(12)]
    assert found == ["plain", *["gpu"] * 4, *["plain"] * 3, *["late"] * 4]


async def test_an_urgent_plain_task_does_not_wait_for_lanes_that_are_always_full(stage: Stage) -> None:
    worker = await stage.worker("box", gpu="nvidia")
    await stage.band.submit(*(make("gpu", placement=GPU) for _ in range(20)))
    await stage.band.submit(*(make("plain") for _ in range(2)), priority=-1)
    assert await stage.claim(worker, 1) == ["plain"]
    assert await stage.claim(worker, 2) == ["gpu"] * 2
    await stage.band.submit(make("urgent"), priority=9)
    stage.clock.now += lane_choice.PLAIN_S
    assert await stage.claim(worker, 1) == ["urgent"]


async def test_lanes_that_nobody_may_serve_are_never_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = stage.band.coordinator.claiming._claim_in

    async def claim_in(lane: int, *rest: Any) -> list[Claim]:
        asked.append(lane)
        return await real(lane, *rest)

    monkeypatch.setattr(stage.band.coordinator.claiming, "_claim_in", claim_in)
    await stage.band.submit(*(make(f"t{n}", placement=f"rack == {n}") for n in range(50)), make("plain"), priority=9)
    assert await stage.claim(await stage.worker("box")) == ["plain"]
    assert asked == [0]


async def test_new_work_is_found_after_a_pause_that_grows_with_the_lanes(stage: Stage) -> None:
    worker = await stage.worker("box", gpu="nvidia")
    assert await stage.claim(worker) == []
    await stage.band.submit(make("first", placement=GPU))
    assert await stage.claim(worker) == []
    stage.clock.now += 2 * lane_choice.LOOK_S_UNUSED
    assert await stage.claim(worker) == ["first"]
    await stage.band.submit(make("next", placement=GPU))
    stage.clock.now += 2 * lane_choice.LOOK_S_MIN
    assert await stage.claim(worker) == ["next"]


async def test_what_another_process_knows_is_not_needed(stage: Stage) -> None:
    worker = await stage.worker("box", gpu="nvidia")
    await stage.band.submit(make("t", placement=GPU))
    stage.band.coordinator = stage.process()
    stage.band.database.lanes.__init__()  # type: ignore[misc]
    assert await stage.claim(worker) == ["t"]


async def test_a_node_that_is_described_anew_is_compared_anew(stage: Stage) -> None:
    worker = await stage.worker("box")
    await stage.band.submit(make("t", placement=GPU))
    assert await stage.claim(worker) == []
    await stage.worker("box", gpu="nvidia")
    stage.clock.now += lane_choice.NODE_S + 1
    assert await stage.claim(worker) == ["t"]


# ---------------------------------------------------------------- so many on a node


async def test_so_many_of_a_function_run_on_a_node_at_a_time(stage: Stage) -> None:
    most = PlacementConstraints(max_parallel_per_node=2)
    await stage.band.submit(*(make("f", placement=most) for _ in range(5)), make("g", placement=most))
    worker, same = await stage.worker("box"), await stage.worker("box")
    other = await stage.worker("other")
    first = await stage.claims(worker)
    assert sorted(claim.name for claim in first) == ["f", "f", "g"]
    assert await stage.claim(same) == await stage.claim(worker) == []
    assert await stage.claim(other) == ["f", "f"]
    ended = next(claim for claim in first if claim.name == "f")
    stage.band.worker = worker
    await stage.band.complete(ended)
    assert await stage.claim(worker) == ["f"]
    assert await stage.band.violations() == []


async def test_tasks_of_the_same_function_with_other_needs_count_too(stage: Stage) -> None:
    worker = await stage.worker("box")
    await stage.band.submit(make("f"))
    (plain,) = await stage.claims(worker)
    await stage.band.submit(make("f", placement=PlacementConstraints(where="a != 1")), make("f", placement={}))
    stage.clock.now += 9
    assert await stage.claim(worker) == []
    stage.band.worker = worker
    await stage.band.complete(plain)
    assert await stage.claim(worker) == ["f"]
    await stage.band.submit(make("f"))
    assert await stage.claim(worker) == ["f"]  # without needs there is no limit


@SERVERS
async def test_two_workers_of_a_node_that_claim_at_once_stay_within_its_limit(stage: Stage) -> None:
    """Lock, then look: the second waits for the first to commit, and counts what it took."""
    await stage.band.submit(*(make("f", placement={}) for _ in range(4)))
    workers = [await stage.worker("box") for _ in range(4)]
    processes = [stage.process() for _ in workers]
    found = await asyncio.gather(
        *(process.claim(worker, limit=3, lanes=None) for process, worker in zip(processes, workers, strict=True))
    )
    assert sum(map(len, found)) == 1
    assert await stage.band.violations() == []


# ---------------------------------------------------------------- wishes


async def test_a_node_that_is_not_preferred_waits_and_then_takes_the_task_too(stage: Stage) -> None:
    wish = PlacementConstraints(prefers=GPU, patience_s=60, max_parallel_per_node=None)
    await stage.band.submit(*(make("t", placement=wish) for _ in range(2)))
    plain, gpu = await stage.worker("plain"), await stage.worker("gpu", gpu="nvidia")
    assert await stage.claim(plain) == []
    assert await stage.claim(gpu, 1) == ["t"]
    stage.clock.now += 59
    assert await stage.claim(plain) == []
    stage.clock.now += 1
    assert await stage.claim(plain) == ["t"]


async def test_tasks_are_spread_while_there_is_a_node_that_runs_none(stage: Stage) -> None:
    wish = PlacementConstraints(spread=True, patience_s=60, max_parallel_per_node=None)
    await stage.band.submit(*(make("t", placement=wish) for _ in range(4)))
    first, second = await stage.worker("a"), await stage.worker("b")
    assert await stage.claim(first) == ["t"]
    assert await stage.claim(first) == []
    assert await stage.claim(second) == ["t"]
    stage.clock.now += 61
    assert await stage.claim(first) == ["t"]
    assert await stage.claim(second) == ["t"]


async def test_a_job_test_runs_all_of_its_job_whatever_that_needs(stage: Stage) -> None:
    job = await stage.band.submit(make("gpu", placement={"where": GPU}), make("gpu", placement={"where": GPU}))
    await stage.band.coordinator.reserve(job.id, stage.band.worker)
    here = stage.band.worker
    claims = await stage.band.coordinator.claim(here, limit=9, reserved_for=here, lanes=None)
    assert [claim.name for claim in claims] == ["gpu", "gpu"]


# ---------------------------------------------------------------- nodes of attempts


def retried(**says: Any) -> Task:
    return make(
        "t", placement={"patience_s": 60, "max_parallel_per_node": None, **says}, retry=RetryPolicy(3, delay_s=0)
    )


async def stays(stage: Stage, name: str) -> int:
    """A worker of this node whose session lasts, however slow the machine is."""
    worker = await stage.worker(name)
    late = update(workers).where(workers.c.id == worker).values(expires_at=datetime.now(UTC) + timedelta(hours=1))
    await stage.band.database.transact(lambda session: session.run(late))
    return worker


async def look(stage: Stage, worker: int, seconds: float = 2 * lane_choice.LOOK_S_UNUSED) -> list[str]:
    stage.clock.now += seconds
    return await stage.claim(worker)


async def fail_on(stage: Stage, worker: int) -> None:
    (claim,) = await stage.claims(worker)
    stage.band.worker = worker
    await stage.band.fail(claim)


async def test_what_failed_on_a_node_is_left_to_others_as_long_as_there_are_any(stage: Stage) -> None:
    a, b = await stays(stage, "a"), await stays(stage, "b")
    await stage.band.submit(retried(retry_node="other"))
    await fail_on(stage, a)
    assert await look(stage, a) == []
    assert await look(stage, a, 600) == await look(stage, await stays(stage, "a")) == []
    (row,) = await stage.band.rows(select(tasks.c.lane))
    assert await stage.band.coordinator.claiming.choice.met(a, [PLAIN, row.lane]) == [PLAIN]
    assert await stage.band.coordinator.claiming.choice.met(b, [PLAIN, row.lane]) == [PLAIN, row.lane]
    assert await look(stage, b) == ["t"]


@pytest.mark.parametrize("how", ["nobody", "cordoned", "dead", "other needs"])
async def test_where_no_other_node_may_run_it_the_same_does_after_a_while(stage: Stage, how: str) -> None:
    a = await stays(stage, "a")
    await stage.band.submit(retried(retry_node="other", where="disk != slow"))
    await fail_on(stage, a)
    if how != "nobody":
        b = await stage.worker("b", disk="slow" if how == "other needs" else "fast")
        if how == "cordoned":
            await stage.band.database.transact(lambda session: set_state(session, "b", NodeState.CORDONED))
        elif how == "dead":
            await stage.band.coordinator.deregister(b)
    assert await look(stage, a) == []
    assert await look(stage, a, 61) == ["t"]


async def test_a_retry_waits_a_while_for_the_node_of_the_attempt_before(stage: Stage) -> None:
    a, b = await stays(stage, "a"), await stays(stage, "b")
    await stage.band.submit(retried(retry_node="same"))
    await fail_on(stage, a)
    assert await look(stage, b) == []
    assert await look(stage, a) == ["t"]
    stage.band.worker = a
    (claim,) = await stage.band.coordinator.claiming.find(a, 0)
    await stage.band.fail(claim)
    await stage.band.database.transact(lambda session: set_state(session, "a", NodeState.CORDONED))
    assert await look(stage, a) == await look(stage, b) == []
    assert await look(stage, b, 61) == ["t"]


async def test_a_task_waits_a_while_for_the_node_of_its_inputs(stage: Stage) -> None:
    a, b = await stays(stage, "a"), await stays(stage, "b")
    first = make("first")
    await stage.band.submit(first, retried(near="inputs").depends_on(first))
    stage.band.worker = a
    await stage.band.complete(*(await stage.claims(a)))
    assert await look(stage, b) == []
    assert await look(stage, a) == ["t"]


async def test_nothing_is_read_of_all_nodes_where_nothing_failed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise AssertionError("it is not needed")

    monkeypatch.setattr(lane_choice, "open_nodes", refuse)
    a = await stays(stage, "a")
    await stage.band.submit(retried(retry_node="other"), make("gpu", placement=GPU))
    assert await look(stage, a) == ["t"]


# ---------------------------------------------------------------- claims that end otherwise


async def test_a_node_has_room_at_once_after_a_remembered_result_or_a_claim_that_is_given_back(stage: Stage) -> None:
    key = CacheKey("d" * 64, "some.module.f", "i" * 64)
    worker = stage.band.worker = await stays(stage, "box")
    await stage.band.submit(*(make("f", placement={}) for _ in range(4)))
    (first,) = await stage.claims(worker)
    assert (await stage.band.coordinator.recall(first, key)).remembers
    await stage.band.report(replace(done(first, encode_value(5, bytes_max=100)), remember=key))
    (second,) = await stage.claims(worker)
    assert await stage.claims(worker) == []
    assert (await stage.band.coordinator.recall(second, key)).hit
    (third,) = await stage.claims(worker)
    assert await stage.claims(worker) == []
    await stage.band.coordinator.release_runs(worker, {third.task_id: third.epoch})
    (fourth,) = await stage.claims(worker)
    assert await stage.claims(worker) == []
    assert fourth.task_id == third.task_id
