"""Affinity: tasks come back into lanes that name the node of their last attempt, or of their inputs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, select, update

from aaiclick.orchestration.models import Claim, Group, Receipt, Task
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.lanes import PLAIN
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.moves import queue
from aaiclick.orchestration.store.nodes.states import remove_node, set_state
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import ready, tasks, workers
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, expire, make

__all__ = ["band"]

SAME = {"retry_node": "same", "max_parallel_per_node": None}
OTHER = {"retry_node": "other", "max_parallel_per_node": None}
NEAR = {"near": "inputs", "max_parallel_per_node": None}
EACH = pytest.mark.parametrize("placement", [SAME, OTHER], ids=["same", "other"])


def retried(placement: object, name: str = "t", retries: int = 3, delay_s: float = 0) -> Task:
    return make(name, placement=placement, retry=RetryPolicy(retries, delay_s=delay_s))


async def enter(band: Orchestra, node: str) -> int:
    """From now on a worker of this node works, however slow the machine is."""
    worker = await band.coordinator.register(hostname="h", pid=2, node=NodeDescription(node))
    late = update(workers).where(workers.c.id == worker.id).values(expires_at=worker.expires_at + timedelta(hours=1))
    await band.database.transact(lambda session: session.run(late))
    band.worker = worker.id
    return worker.id


async def take(band: Orchestra, node: str, *names: str, begins: int = 9) -> list[Claim]:
    """A worker of this node claims all that is ready, of any lane, and these are it."""
    await enter(band, node)
    found = sorted({row.lane for row in await band.rows(select(ready.c.lane))})
    claims = await band.claim(lanes=found, begins=begins)
    assert sorted(claim.name for claim in claims) == sorted(names or ("t",))
    return claims


async def named(band: Orchestra, name: str = "t") -> dict[str, str]:
    """What the lane of this task names; if it is ready, then in that lane."""
    (row,) = await band.rows(select(tasks.c.id, tasks.c.lane).where(tasks.c.name == name))
    queued = await band.rows(select(ready.c.lane).where(ready.c.task_id == row.id))
    assert {each.lane for each in queued} <= {row.lane}
    needs = await band.scalar(select(lanes.c.needs).where(lanes.c.id == row.lane))
    found = json.loads(needs or "{}")
    return {key: found[key] for key in ("previous", "inputs_on") if key in found}


@contextmanager
def statements(band: Orchestra) -> Iterator[list[str]]:
    """The statements that are sent meanwhile, except those that the driver sends by itself."""
    sent: list[str] = []

    def count(*facts: Any) -> None:
        sent.append(facts[2])

    engine = band.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", count)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", count)


# ---------------------------------------------------------------- attempts that failed


@EACH
async def test_the_next_attempt_knows_the_node_of_the_one_before(band: Orchestra, placement: object) -> None:
    await band.submit(retried(placement))
    assert await named(band) == {}
    await band.fail(*(await take(band, "A")))
    assert await named(band) == {"previous": "A"}
    await band.fail(*(await take(band, "B")), crashed=True)
    assert await named(band) == {"previous": "B"}
    await band.complete(*(await take(band, "C")))
    assert await band.violations() == []


@EACH
async def test_one_that_waits_for_its_time_knows_it_too(band: Orchestra, placement: object) -> None:
    await band.submit(retried(placement, delay_s=60))
    await band.fail(*(await take(band, "A")))
    assert await named(band) == {"previous": "A"}
    await band.let_time_pass()
    assert await band.database.transact(queue.promote_due) == 1
    assert await named(band) == {"previous": "A"}
    await take(band, "B")


@EACH
async def test_a_run_whose_worker_is_lost_counts_as_an_attempt_there(band: Orchestra, placement: object) -> None:
    """Also while its node is closed, or at the end of all its attempts."""
    await band.submit(retried(placement))

    async def lose(node: str, begins: int, losses_max: int) -> None:
        await take(band, node, begins=begins)
        await band.database.transact(lambda session: set_state(session, node, NodeState.CORDONED))
        await expire(band)
        await band.database.transact(worker_sessions.expire_sessions)
        recover = lambda session: recoveries.recover_claims(session, losses_max)  # noqa: E731
        assert await band.database.transact(recover) == 1

    await lose("A", 0, 9)
    assert await named(band) == {}, "the body had not begun"
    await lose("A2", 1, 9)
    assert await named(band) == {"previous": "A2"}
    await lose("B", 1, 2)
    assert await named(band) == {"previous": "B"}
    assert await band.violations() == []


@EACH
async def test_a_claim_that_is_given_back_is_no_attempt(band: Orchestra, placement: object) -> None:
    await band.submit(retried(placement))
    await band.fail(*(await take(band, "A")))
    await band.coordinator.release(band.worker, await take(band, "B"))
    assert await named(band) == {"previous": "A"}


async def test_a_worker_without_a_node_names_none(band: Orchestra) -> None:
    await band.submit(retried(OTHER))
    await band.fail(*(await take(band, "A")))
    band.worker = (await band.coordinator.register(hostname="h", pid=3)).id
    (lane,) = await band.rows(select(ready.c.lane))
    await band.fail(*(await band.claim(lanes=lane)))
    assert await named(band) == {}


@EACH
async def test_tasks_that_fail_together_change_together(band: Orchestra, placement: object) -> None:
    await band.submit(retried(placement, "a"), retried(placement, "b", retries=0), retried(None, "plain"))
    await band.fail(*(await take(band, "A", "a", "b", "plain")))
    assert [await named(band, name) for name in ("a", "b", "plain")] == [{"previous": "A"}] * 2 + [{}]


# ---------------------------------------------------------------- tasks that run again


@EACH
async def test_a_task_that_was_given_up_knows_where(band: Orchestra, placement: object) -> None:
    job = await band.submit(retried(placement, retries=0))
    await band.fail(*(await take(band, "A")))
    assert len(await band.coordinator.retry_failed(job.id)) == 1
    assert await named(band) == {"previous": "A"}
    assert await band.violations() == []


@pytest.mark.parametrize(("placement", "after"), [(SAME, {"previous": "B"}), (OTHER, {})], ids=["same", "other"])
async def test_a_task_that_is_cleared_goes_by_its_last_attempt(
    band: Orchestra, placement: object, after: dict[str, str]
) -> None:
    task = retried(placement)
    await band.submit(task)
    await band.fail(*(await take(band, "A")))
    await band.complete(*(await take(band, "B")))
    await band.coordinator.clear(task.id)
    assert await named(band) == after
    assert await band.violations() == []


@pytest.mark.parametrize(("placement", "after"), [(SAME, "B"), (OTHER, "A")], ids=["same", "other"])
async def test_one_that_is_cleared_or_cancelled_while_it_runs_has_not_failed_there(
    band: Orchestra, placement: object, after: str
) -> None:
    task = retried(placement)
    job = await band.submit(task)
    await band.fail(*(await take(band, "A")))
    await band.coordinator.clear(task.id)
    assert await named(band) == {"previous": "A"}, "it waits, and nothing is new"
    await take(band, "B")
    await band.coordinator.clear(task.id)
    assert await named(band) == {"previous": after}
    await take(band, "B")
    await band.coordinator.cancel(job.id)
    await band.coordinator.clear(task.id)
    assert await named(band) == {"previous": after}
    assert await band.violations() == []


# ---------------------------------------------------------------- inputs


async def test_a_task_is_drawn_to_the_node_that_ran_most_of_its_inputs(band: Orchestra) -> None:
    group = Group("g")
    members = [make(f"m{number}", group_id=group.id) for number in range(2)]
    single, other, use = make("single"), make("other"), make("use", placement=NEAR)
    (single >> use, other >> use, group >> use)
    job = await band.submit(group, *members, single, other, use)
    claims = {claim.name: claim for claim in await take(band, "B", "m0", "m1", "other", "single")}
    await band.complete(claims["other"], claims["m0"])
    await band.coordinator.release(band.worker, [claims["m1"], claims["single"]])
    assert await named(band, "use") == {}
    await band.complete(*(await take(band, "A", "m1", "single")))
    assert await named(band, "use") == {"inputs_on": "A"}, "of two equal ones the first by name"
    await band.apply(job, make("late", placement=NEAR))
    assert await named(band, "late") == {}
    await band.apply(job, after := make("after", placement=NEAR).depends_on(other))
    assert await named(band, after.name) == {"inputs_on": "B"}
    assert await band.violations() == []


async def test_inputs_that_are_made_anew_elsewhere_draw_there(band: Orchestra) -> None:
    first, use = make("first"), retried({**NEAR, **SAME}, "use")
    first >> use
    await band.submit(first, use)
    await band.complete(*(await take(band, "A", "first")))
    assert await named(band, "use") == {"inputs_on": "A"}
    await band.coordinator.clear(first.id)
    await band.complete(*(await take(band, "B", "first")))
    assert await named(band, "use") == {"inputs_on": "B"}
    await band.fail(*(await take(band, "C", "use")))
    assert await named(band, "use") == {"previous": "C"}
    assert await band.violations() == []


async def test_a_task_that_is_cleared_beside_its_inputs_is_drawn_to_them(band: Orchestra) -> None:
    first, use = make("first"), make("use", placement=NEAR)
    first >> use
    await band.submit(first, use)
    await band.complete(*(await take(band, "A", "first")))
    await band.complete(*(await take(band, "A", "use")))
    await band.coordinator.clear(use.id)
    assert await named(band, "use") == {"inputs_on": "A"}


# ---------------------------------------------------------------- what it costs, and who else is there


async def test_other_tasks_ask_nothing_and_a_node_is_asked_for_once(band: Orchestra) -> None:
    plain, gpu = retried(None, "plain"), retried("gpu != 1", "gpu")
    first, following = make("first"), make("next")
    first >> following
    await band.submit(plain, gpu, first, following)
    claims = {claim.name: claim for claim in await take(band, "A", "first", "gpu", "plain")}
    with statements(band) as sent:
        await band.fail(claims["plain"])
        await band.complete(claims["first"])
        await band.fail(claims["gpu"])
    assert not [each for each in sent if "FROM lanes" in each or "nodes" in each]
    await band.submit(*(retried(OTHER, name) for name in ("a", "b")))
    claims = {claim.name: claim for claim in await take(band, "A", "a", "b", "gpu", "next", "plain")}
    await band.fail(claims["a"])
    with statements(band) as sent:
        await band.fail(claims["b"])
    assert len([each for each in sent if "nodes" in each]) == 1
    assert not [each for each in sent if "FROM lanes" in each or "INTO lanes" in each]


@SERVERS
async def test_two_workers_of_a_node_that_fail_at_once_make_one_lane(band: Orchestra) -> None:
    await band.submit(*(retried(OTHER, f"t{number}") for number in range(4)))
    claims = await take(band, "A", "t0", "t1", "t2", "t3")
    await asyncio.gather(*(band.fail(claim) for claim in claims))
    assert [await named(band, claim.name) for claim in claims] == [{"previous": "A"}] * 4
    assert len({row.lane for row in await band.rows(select(tasks.c.lane))} - {PLAIN}) == 1
    assert await band.violations() == []


@SERVERS
async def test_a_report_that_waits_while_its_node_is_removed_counts_no_more(band: Orchestra) -> None:
    await band.submit(retried(OTHER))
    (claim,) = await take(band, "A")
    reports: list[asyncio.Task[Receipt]] = []

    async def remove(session: Session) -> None:
        assert await remove_node(session, "A", 9, force=True)
        reports.append(asyncio.create_task(band.fail(claim)))
        await band.until_waiting()

    await band.database.transact(remove)
    assert not (await reports[0]).accepted
    assert await named(band) == {"previous": "A"}
    task = await band.task(claim)
    assert (task.status, task.attempt, task.lost_count) == ("pending", 0, 1)
    await take(band, "A")
    assert await band.violations() == []
