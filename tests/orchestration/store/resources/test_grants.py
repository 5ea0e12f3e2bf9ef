"""Resources are granted with the claim, all or none, and held until the body is dead."""

from __future__ import annotations

from sqlalchemy import select

from aaiclick.orchestration.models import Claim, Group
from aaiclick.orchestration.rules.naming.hints import FREED
from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.claims import recoveries, single_claims
from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from aaiclick.orchestration.store.nodes.states import remove_node
from aaiclick.orchestration.store.resources import grants
from aaiclick.orchestration.store.tables import claims
from tests.support.band import band
from tests.support.grants import TWO_GPUS, begin, capacity, claim, devices, held, lanes_of, one
from tests.support.orchestra import Orchestra, expire, failure, make, orchestra

__all__ = ["band"]

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


async def test_who_never_heard_of_a_lane_grants_what_it_needs(band: Orchestra, migrated_sql_url: str) -> None:
    await begin(band, **TWO_GPUS)
    await band.submit(make(resources={"gpu": 1}))
    async with orchestra(migrated_sql_url) as other:
        (taken,) = await other.coordinator.claim(band.worker, limit=1, lanes=await lanes_of(band), begins=1)
    assert devices([taken]) == [[0]]
    assert len(await held(band)) == 1


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


async def test_a_node_that_is_removed_by_force_frees_what_its_runs_held(band: Orchestra) -> None:
    await one(band)
    await band.database.transact(lambda session: remove_node(session, "box", 9, force=True))
    assert await held(band) == {}
    units, _ = await band.database.read(grants.read_units)
    assert units == []
