"""Resources are granted with the claim, all or none, and held until the body is dead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.control import repairs
from aaiclick.orchestration.models import Claim, Group, Held
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.naming.hints import FREED
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.claims import recoveries, single_claims
from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from aaiclick.orchestration.store.nodes.states import remove_node
from aaiclick.orchestration.store.resources import grants
from aaiclick.orchestration.store.resources.grants import plan_grants
from aaiclick.orchestration.store.resources.units import remove_capacity, set_capacity
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, tasks
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, expire, failure, make

__all__ = ["band"]

TWO_GPUS = {"gpu": 2, "gpu_memory_mb": 10_000}
AGAIN = RetryPolicy(9, delay_s=0)


async def begin(band: Orchestra, name: str = "box", **resources: Any) -> int:
    """A worker of a node that has these, which claims from now on."""
    node = NodeDescription(name, resources=resources)
    band.worker = (await band.coordinator.register(hostname="h", pid=2, node=node)).id
    return band.worker


async def lanes_of(band: Orchestra) -> list[int]:
    return sorted({row.lane for row in await band.rows(select(tasks.c.lane))} - {0})


async def claim(band: Orchestra, limit: int = 9, **options: Any) -> list[Claim]:
    """Claim in all lanes that need something, as the coordinator does when it has forgotten all that it knew."""
    return await band.claim(limit, lanes=await lanes_of(band), begins=limit, **options)


async def held(band: Orchestra) -> dict[tuple[int, str], int]:
    """Who holds what: thousandths by task and name, GPUs by their index."""
    rows = await band.rows(select(resource_grants))
    return {(row.task_id, f"{row.name}{row.slot if row.name == 'gpu' else ''}"): row.amount for row in rows}


def devices(claimed: Sequence[Claim]) -> list[list[int]]:
    return [[grant.slot for grant in claim.grants if grant.name == "gpu"] for claim in claimed]


async def capacity(band: Orchestra, name: str, amount: float) -> None:
    await band.database.transact(lambda session: set_capacity(session, name, amount))


# ---------------------------------------------------------------- claims


async def test_a_task_is_claimed_together_with_its_gpu_or_not_at_all(band: Orchestra) -> None:
    await begin(band, **TWO_GPUS)
    await band.submit(*(make(name, resources={"gpu": 1}, priority=-order) for order, name in enumerate("abc")))
    taken = await claim(band)
    assert [each.name for each in taken] == ["a", "b"]
    assert devices(taken) == [[0], [1]]
    assert await band.ready_names() == ["c"], "it stays ready, and nothing is half claimed"
    assert not await claim(band)
    await band.complete(taken[1])
    (third,) = await claim(band)
    assert (third.name, devices([third])) == ("c", [[1]])
    assert await band.rows(select(claims.c.task_id).where(claims.c.task_id == taken[1].task_id)) == []
    assert not await band.violations()


async def test_shares_of_memory_are_put_where_the_least_is_left(band: Orchestra) -> None:
    await begin(band, gpu=[{"memory_mb": 24_000}, {"memory_mb": 10_000}])
    await band.submit(*(make(f"t{n}", resources={"gpu_memory_mb": 6_000}, priority=-n) for n in range(3)))
    taken = await claim(band)
    assert devices(taken) == [[1], [0], [0]]
    await band.submit(make("whole", resources={"gpu": 1}))
    assert not await claim(band), "no GPU is without grants"
    await band.complete(taken[0])
    assert devices(await claim(band)) == [[1]]


async def test_all_that_a_task_needs_is_granted_or_nothing(band: Orchestra) -> None:
    await begin(band, cpu=4, **TWO_GPUS)
    await capacity(band, "licence:abaqus", 1)
    needs = {"gpu": 1, "cpu": 1, "licence:abaqus": 1}
    first, second = make("a", resources=needs, priority=1), make("b", resources=needs)
    await band.submit(first, second)
    (taken,) = await claim(band)
    assert await held(band) == {
        (first.id, "cpu0"[:3]): 1000,
        (first.id, "gpu0"): 10_000_000,
        (first.id, "licence:abaqus"): 1000,
    }
    assert not await claim(band)
    await band.complete(taken)
    assert [each.name for each in await claim(band)] == ["b"]


async def test_what_a_node_and_the_installation_both_have_is_taken_of_both(band: Orchestra) -> None:
    await capacity(band, "db", 3)
    first = await begin(band, "first", db=2)
    await band.submit(*(make(f"t{n}", resources={"db": 1}) for n in range(5)))
    assert len(await claim(band)) == 2
    await begin(band, "second", db=2)
    assert len(await claim(band)) == 1
    band.worker = first
    assert not await claim(band)


async def test_a_resource_that_nobody_has_is_granted_to_nobody(band: Orchestra) -> None:
    await begin(band)
    await band.submit(make(resources={"licence:none": 1}))
    assert not await claim(band)
    await capacity(band, "licence:none", 1)
    assert await claim(band)


async def test_jobs_and_groups_say_for_all_of_their_tasks(band: Orchestra) -> None:
    await begin(band, cpu=9)
    await capacity(band, "tenant:a", 2)
    group = Group("g", resources={"cpu": 2})
    inner = make("inner", group_id=group.id, resources={"cpu": 3})
    alone = make("alone", resources={"tenant:a": 0})
    await band.submit(inner, make("other", group_id=group.id), alone, resources={"tenant:a": 1})
    taken = {each.name: each for each in [*await claim(band), *await band.claim()]}
    amounts = {name: {grant.name: grant.amount for grant in each.grants} for name, each in taken.items()}
    assert amounts == {
        "inner": {"cpu": 3000, "tenant:a": 1000},
        "other": {"cpu": 2000, "tenant:a": 1000},
        "alone": {},
    }


async def test_who_cannot_begin_claims_one_at_most(band: Orchestra) -> None:
    """What waits in the worker for a slot holds its resources idly."""
    await begin(band, cpu=9)
    await band.submit(*(make(resources={"cpu": 1}) for _ in range(5)))
    lanes = await lanes_of(band)
    assert len(await band.claim(5, lanes=lanes, begins=0)) == 1
    assert len(await band.claim(5, lanes=lanes, begins=3)) == 3


async def test_a_job_that_is_reserved_for_its_process_is_granted_nothing_and_runs(band: Orchestra) -> None:
    await band.submit(make(resources={"gpu": 8}), reserved_for=7)
    (taken,) = await band.claim(lanes=await lanes_of(band), reserved_for=7)
    assert taken.grants == []


async def test_a_claim_whose_answer_was_lost_is_found_with_its_grants(band: Orchestra) -> None:
    await begin(band, **TWO_GPUS)
    await band.submit(make(resources={"gpu": 2}))
    lanes = await lanes_of(band)
    (made,) = await band.coordinator.claim(band.worker, limit=1, lanes=lanes, call=3, begins=1)
    (found,) = await band.coordinator.claim(band.worker, limit=1, lanes=lanes, call=3, again=True)
    assert found.grants == made.grants != []


async def test_a_single_task_that_somebody_chooses_needs_its_resources_too(band: Orchestra) -> None:
    await begin(band, **TWO_GPUS)
    one, two = make("one", resources={"gpu": 2}), make("two", resources={"gpu": 1})
    await band.submit(one, two)

    async def choose(task_id: int) -> Claim | None:
        return await band.database.transact(
            lambda session: single_claims.claim_task(session, worker_id=band.worker, task_id=task_id, installation="")
        )

    found = await choose(one.id)
    assert found is not None
    assert devices([found]) == [[0, 1]]
    assert await choose(two.id) is None
    assert not await band.violations()


# ---------------------------------------------------------------- ends


async def one(band: Orchestra, **options: Any) -> Claim:
    await begin(band, gpu=1)
    await band.submit(make("t", resources={"gpu": 1}, retry=AGAIN, **options), make("plain"))
    (taken,) = await claim(band)
    return taken


async def test_whoever_reports_is_dead_and_frees(band: Orchestra) -> None:
    taken = await one(band)
    for end in (failure(taken), None):
        await (band.complete(taken) if end is None else band.report(end))
        assert await held(band) == {}
        if end is not None:
            (taken,) = await claim(band)
    assert FREED == "freed"


async def test_a_claim_that_is_given_back_frees(band: Orchestra) -> None:
    taken = await one(band)
    await band.coordinator.release(band.worker, [taken])
    assert await held(band) == {}
    assert await claim(band)


async def test_a_cancelled_body_occupies_until_its_worker_says_that_it_is_dead(band: Orchestra) -> None:
    taken = await one(band)
    await band.coordinator.cancel(taken.job_id)
    await band.submit(make("next", resources={"gpu": 1}))
    assert not await claim(band)
    await band.coordinator.let_go(band.worker + 1, [(taken.task_id, taken.epoch)])
    assert not await claim(band), "another worker knows nothing of it"
    await band.coordinator.let_go(band.worker, [(taken.task_id, taken.epoch)])
    assert [each.name for each in await claim(band)] == ["next"]


async def test_a_cleared_body_occupies_and_its_late_report_frees(band: Orchestra) -> None:
    taken = await one(band)
    await band.coordinator.clear(taken.task_id)
    assert not await claim(band), "its successor waits for the GPU that it still has"
    receipt = await band.complete(taken)
    assert not receipt.accepted
    (again,) = await claim(band)
    assert (again.task_id, again.epoch) == (taken.task_id, taken.epoch + 2)
    assert len(await held(band)) == 1
    await band.complete(taken)
    assert len(await held(band)) == 1, "a report of an older run frees nothing of its successor"


async def test_while_its_claim_lives_a_run_holds_whatever_is_said(band: Orchestra) -> None:
    taken = await one(band)
    await band.coordinator.let_go(band.worker, [(taken.task_id, taken.epoch)])
    assert len(await held(band)) == 1


async def test_task_and_gpu_of_a_lost_worker_come_back_together(band: Orchestra) -> None:
    taken = await one(band)
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    assert len(await held(band)) == 1, "the session has ended, and nothing is recovered yet"
    async with band.transaction() as session:
        assert await recoveries.recover_claims(session, 9) == 1
        left = await session.rows(select(resource_grants))
        assert left == []
    assert await held(band) == {}
    assert (await band.task(taken)).status == TaskStatus.PENDING


async def test_a_cancelled_body_of_a_lost_worker_is_freed_by_the_leader(band: Orchestra) -> None:
    taken = await one(band)
    await band.coordinator.cancel(taken.job_id)
    assert await repairs.free_stray_grants(band.database) == 0
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    assert await repairs.free_stray_grants(band.database) == 1
    assert await held(band) == {}


async def test_a_worker_that_never_heard_of_its_claim_holds_nothing_for_ever(band: Orchestra) -> None:
    """The answer was lost, and the task cancelled: the heartbeat says that nobody runs it."""
    await begin(band, gpu=1)
    await band.submit(make(resources={"gpu": 1}))
    lanes = await lanes_of(band)
    (taken,) = await band.coordinator.claim(band.worker, limit=1, lanes=lanes, call=4, begins=1)
    await band.coordinator.cancel(taken.job_id)
    database, run = band.database, Held(taken.task_id, taken.epoch)
    assert await database.read(lambda session: grants.unlisted_holders(session, band.worker, 3)) == set()
    for known, listed, left in ((3, [], 1), (4, [run], 1), (4, [], 0)):
        band.coordinator._freed_for[band.worker] = float("-inf")
        await band.coordinator.beat(band.worker, known_call=known, held=listed)
        assert len(await held(band)) == left


async def test_a_node_that_is_removed_by_force_frees_what_its_runs_held(band: Orchestra) -> None:
    await one(band)
    await band.database.transact(lambda session: remove_node(session, "box", 9, force=True))
    assert await held(band) == {}
    units, _ = await band.database.read(grants.read_units)
    assert units == []


async def test_a_grant_that_was_forgotten_is_freed_and_said(band: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    taken = await one(band)
    assert await repairs.free_leaked_grants(band.database) == 0
    async with band.transaction() as session:
        kept = await session.rows(select(resource_grants))
    await band.complete(taken)
    await band.database.transact(lambda session: session.insert(resource_grants, [dict(row._mapping) for row in kept]))
    assert await repairs.free_leaked_grants(band.database) == 1
    assert "still held resources" in caplog.text
    assert await held(band) == {}


# ---------------------------------------------------------------- capacities that change


async def test_a_capacity_that_shrinks_grants_nothing_until_there_is_room(band: Orchestra) -> None:
    await capacity(band, "seat", 3)
    await begin(band)
    await band.submit(*(make(resources={"seat": 1}) for _ in range(6)))
    first = await claim(band, 3)
    await capacity(band, "seat", 1)
    await band.complete(first[0], first[1])
    assert not await claim(band)
    await band.complete(first[2])
    assert len(await claim(band)) == 1
    await band.database.transact(lambda session: remove_capacity(session, "seat"))
    assert not await claim(band)
    await capacity(band, "seat", 1)
    assert not await claim(band), "what is held of a capacity that is set anew is still held"


async def test_a_node_that_is_described_anew_keeps_what_is_held(band: Orchestra) -> None:
    await begin(band, **TWO_GPUS)
    await band.submit(*(make(resources={"gpu": 1}) for _ in range(3)))
    first, second = await claim(band)
    await begin(band, gpu=1)
    assert not await claim(band)
    await begin(band, **TWO_GPUS)
    assert not await claim(band)
    await band.coordinator.release(first.worker_id, [first, second])
    assert len(await claim(band)) == 2


# ---------------------------------------------------------------- at the same time


async def test_many_claimers_take_each_unit_once(band: Orchestra) -> None:
    crew = [await begin(band, f"box{n % 2}", **TWO_GPUS) for n in range(6)]
    await capacity(band, "seat", 3)
    await band.submit(*(make(f"t{n}", resources={"gpu": 1, "seat": 1}) for n in range(12)))
    lanes = await lanes_of(band)
    found = await asyncio.gather(
        *(band.coordinator.claim(worker, limit=2, lanes=lanes, begins=2) for worker in crew for _ in range(2))
    )
    taken = [claim for claims_of_one in found for claim in claims_of_one]
    assert len(taken) == 3
    places = [(grant.scope, grant.slot) for claim in taken for grant in claim.grants if grant.name == "gpu"]
    assert len(set(places)) == 3
    assert not await band.violations()


@SERVERS
async def test_who_asks_for_the_last_unit_second_sees_that_it_is_gone(band: Orchestra) -> None:
    """Forced: the first has looked and not yet claimed when the second begins to look."""
    first, second = await begin(band, gpu=1), await begin(band, gpu=1)
    await band.submit(*(make(resources={"gpu": 1}) for _ in range(2)))
    (lane,) = await lanes_of(band)
    async with band.transaction() as session:
        planned = await plan_grants(session, first, {"gpu": 1}, 1)
        other = asyncio.create_task(band.coordinator.claim(second, limit=1, lanes=[lane], begins=1))
        await band.until_waiting()
        taken = await session.dialect.claim_ready(
            session, worker_id=first, reserved_for=0, lane=lane, limit=1, after=None
        )
        made = [Claim(task.id, task.epoch, first, task.job_id, None, "t", "", "{}", 0, None) for task in taken]
        assert len(await grants.grant(session, made, planned, 1)) == 1
    assert await other == []
    assert len(await held(band)) == 1


@SERVERS
async def test_who_asks_for_the_last_seat_of_all_second_sees_that_it_is_gone(band: Orchestra) -> None:
    await capacity(band, "seat", 1)
    first, second = await begin(band, "one"), await begin(band, "two")
    async with band.transaction() as session:
        assert await plan_grants(session, first, {"seat": 1}, 1)
        other = asyncio.create_task(
            band.database.transact(lambda session: plan_grants(session, second, {"seat": 1}, 1))
        )
        await band.until_waiting()
        row = {"task_id": 1, "epoch": 1, "scope": 0, "name": "seat", "slot": 0, "amount": 1000, "worker_id": first}
        await session.insert(resource_grants, [row])
    assert await other == []


@SERVERS
async def test_a_capacity_is_made_smaller_before_or_after_a_claim(band: Orchestra) -> None:
    await capacity(band, "seat", 1)
    worker = await begin(band)
    async with band.transaction() as session:
        await set_capacity(session, "seat", 0)
        other = asyncio.create_task(
            band.database.transact(lambda session: plan_grants(session, worker, {"seat": 1}, 1))
        )
        await band.until_waiting()
    assert await other == []


@SERVERS
async def test_a_capacity_is_removed_before_or_after_a_claim(band: Orchestra) -> None:
    await capacity(band, "seat", 1)
    worker = await begin(band)
    async with band.transaction() as session:
        assert await remove_capacity(session, "seat")
        other = asyncio.create_task(
            band.database.transact(lambda session: plan_grants(session, worker, {"seat": 1}, 1))
        )
        await band.until_waiting()
    assert await other == []


@SERVERS
async def test_a_node_is_described_anew_before_or_after_a_claim(band: Orchestra) -> None:
    worker = await begin(band, gpu=1)
    async with band.transaction() as session:
        assert await plan_grants(session, worker, {"gpu": 1}, 1)
        other = asyncio.create_task(begin(band, gpu=0))
        await band.until_waiting()
    await other
    assert not await band.database.transact(lambda session: plan_grants(session, worker, {"gpu": 1}, 1))


async def test_a_seat_that_is_set_while_others_look_is_granted_to_nobody_yet(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not there to be locked, so two could be granted the same."""
    worker = await begin(band)
    real = grants.read_units

    async def read_units(session: Session, *which: Any) -> Any:
        await set_capacity(session, "seat", 1)
        return await real(session, *which)

    monkeypatch.setattr(grants, "read_units", read_units)
    asked = {"worker_id": worker, "resources": {"seat": 1}, "most": 1}
    assert await band.database.transact(lambda session: plan_grants(session, **asked)) == []  # type: ignore[arg-type]
    monkeypatch.undo()
    assert await band.database.transact(lambda session: plan_grants(session, **asked))  # type: ignore[arg-type]


async def test_a_cancel_that_comes_before_the_claim_leaves_nothing_held(band: Orchestra) -> None:
    await begin(band, **TWO_GPUS)
    job = await band.submit(make(resources={"gpu": 1}))
    lanes = await lanes_of(band)
    found, _ = await asyncio.gather(
        band.coordinator.claim(band.worker, limit=1, lanes=lanes, begins=1), band.coordinator.cancel(job.id)
    )
    assert len(await held(band)) == len(found)
    await band.coordinator.let_go(band.worker, [(each.task_id, each.epoch) for each in found])
    assert await held(band) == {}
    assert not await band.violations()


async def test_a_report_and_a_recovery_of_the_same_run_free_once(band: Orchestra) -> None:
    taken = await one(band)
    await expire(band)
    await band.database.transact(worker_sessions.expire_sessions)
    await asyncio.gather(
        band.complete(taken), band.database.transact(lambda session: recoveries.recover_claims(session, 9))
    )
    assert await held(band) == {}
    await begin(band, gpu=1)
    await claim(band)
    left = await band.scalar(select(tasks.c.status).where(tasks.c.id == taken.task_id))
    assert len(await held(band)) == (left == "claimed")


async def test_a_transaction_that_fails_after_the_claim_leaves_neither(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begin(band, **TWO_GPUS)
    await band.submit(make("t", resources={"gpu": 1}))

    async def fails(*_: object) -> None:
        raise SystemError("no grant")

    monkeypatch.setattr("aaiclick.orchestration.coordinator.claiming.grant", fails)
    with pytest.raises(SystemError):
        await claim(band)
    monkeypatch.undo()
    assert await band.ready_names() == ["t"]
    assert await held(band) == {}
    assert await claim(band)


async def test_what_is_held_for_plain_tasks_asks_the_database_nothing(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    real = Session.run

    async def run(session: Session, statement: Any, values: Any = None) -> int:
        if getattr(getattr(statement, "table", None), "name", "") == "resource_grants":
            seen.append(statement)
        return await real(session, statement, values)

    monkeypatch.setattr(Session, "run", run)
    await band.submit(make("plain"))
    await band.complete(*await band.claim())
    assert seen == []
