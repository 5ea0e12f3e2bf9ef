"""One conformance suite for whoever coordinates, on every database: jobs, workers, ids, hints and tables.

Its other half, the runs of tasks, is test_coordinator_runs.py.
"""

from __future__ import annotations

import asyncio

import pytest

from aaiclick.errors import CircularDependencyError, JobEnded, NotFound
from aaiclick.ids import new_ids
from aaiclick.orchestration.coordinator.contract import JobCoordinator as Coordinator
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.naming.hints import READY
from aaiclick.orchestration.rules.values.run_tables import run_table
from tests.support.coordinators import claim_one, look, submission
from tests.support.orchestra import done, make

# ---------------------------------------------------------------- submit


async def test_a_graph_is_stored_and_its_job_given_back(coordinator: Coordinator) -> None:
    job = await coordinator.submit(submission(make("a") >> make("b")))
    assert (job.name, job.status, job.total_tasks, job.open_tasks) == ("job", "pending", 2, 2)
    assert (await look(coordinator, job)).created_at == job.created_at
    assert await coordinator.job(12345) is None


async def test_a_graph_is_stored_whole_or_not_at_all(coordinator: Coordinator, worker: int) -> None:
    a, b = make("a"), make("b")
    a >> b >> a
    refused = submission(a, b, make("fine"))
    with pytest.raises(CircularDependencyError):
        await coordinator.submit(refused)
    assert await coordinator.job(refused.job_id) is None
    assert await coordinator.claim(worker, limit=10) == []


async def test_more_can_be_added_until_the_job_has_ended(coordinator: Coordinator, worker: int) -> None:
    job = await coordinator.submit(submission(make("a")))
    first = await claim_one(coordinator, worker)
    job = await coordinator.submit(gather(job.id, [make("b")]))
    assert (job.total_tasks, job.open_tasks) == (2, 2)
    await coordinator.report(worker, [done(first), done(await claim_one(coordinator, worker))])
    assert (await look(coordinator, job)).status == "completed"
    with pytest.raises(JobEnded):
        await coordinator.submit(gather(job.id, [make("c")]))
    with pytest.raises(NotFound):
        await coordinator.submit(gather(12345, [make("d")]))


async def test_a_key_gives_the_job_that_has_it(coordinator: Coordinator) -> None:
    first = await coordinator.submit(submission(make("a"), key="k"))
    again = await coordinator.submit(submission(make("a"), key="k"))
    assert again.id == first.id


# ---------------------------------------------------------------- workers


async def test_a_session_is_renewed_until_it_is_over(coordinator: Coordinator) -> None:
    begun = await coordinator.register(hostname="here", pid=1)
    assert begun.expires_at > begun.started_at
    assert (await coordinator.beat(begun.id)).alive
    assert await coordinator.deregister(begun.id)
    assert not (await coordinator.beat(begun.id)).alive
    assert not await coordinator.deregister(begun.id)
    assert not (await coordinator.beat(12345)).alive


async def test_workers_of_the_same_name_of_a_node_are_of_one_node(coordinator: Coordinator) -> None:
    said = NodeDescription("box-1", pool="p", capabilities={"gpu": "nvidia", "labels": ["a"], "memory_gb": 1.5})
    first = await coordinator.register(hostname="here", pid=1, node=said)
    again = await coordinator.register(hostname="here", pid=2, node=NodeDescription("box-1"))
    other = await coordinator.register(hostname="here", pid=3, node=NodeDescription("Box-1"))
    assert first.node_id is not None
    assert first.node_id == again.node_id != other.node_id
    assert (await coordinator.register(hostname="here", pid=4)).node_id not in (first.node_id, other.node_id)
    assert not first.cordoned


async def test_the_slots_are_those_of_workers_that_take_tasks(coordinator: Coordinator) -> None:
    assert await coordinator.slots() == 0
    first = await coordinator.register(hostname="here", pid=1, concurrency=4)
    await coordinator.register(hostname="here", pid=2, concurrency=3)
    await coordinator.register(hostname="here", pid=3, concurrency=0)
    assert await coordinator.slots() == 7
    await coordinator.deregister(first.id)
    assert await coordinator.slots() == 3


# ---------------------------------------------------------------- ids, hints and tables


async def test_ids_are_granted_again_and_again(coordinator: Coordinator) -> None:
    for _ in range(2):
        await coordinator.grant_ids()
        assert len(set(new_ids(100))) == 100


async def test_a_hint_is_heard_once_and_none_when_the_time_is_up(coordinator: Coordinator) -> None:
    assert await coordinator.wait_for_hints(0.001) == frozenset()
    await coordinator.submit(submission(make("a")))
    heard: set[str] = set()
    async with asyncio.timeout(60):
        while READY not in heard:
            heard |= await coordinator.wait_for_hints(5)
    assert await coordinator.wait_for_hints(0.001) == frozenset()


async def test_tables_that_are_given_are_registered_and_belong_to_their_job(coordinator: Coordinator) -> None:
    job = await coordinator.submit(submission(make("a")))
    tables = [run_table(job.id, 0, number) for number in (1, 2)]
    assert await coordinator.register_tables(job.id, tables, None)
    assert await coordinator.tables_of_others(job.id, tables) == set()
    assert await coordinator.tables_of_others(12345, [*tables, "nobodys"]) == set(tables)
    await coordinator.leave_tables(tables)
    with pytest.raises(NotFound):
        await coordinator.register_tables(12345, tables, None)


# ---------------------------------------------------------------- jobs as a whole


async def test_a_reserved_job_is_claimed_by_its_owner_alone(coordinator: Coordinator, worker: int) -> None:
    kept = await coordinator.submit(submission(make("kept") >> make("follows")))
    await coordinator.submit(submission(make("free")))
    await coordinator.reserve(kept.id, 77)
    assert [claim.name for claim in await coordinator.claim(worker, limit=9)] == ["free"]
    (claim,) = await coordinator.claim(worker, limit=9, reserved_for=77)
    await coordinator.submit(gather(kept.id, [make("added")]))
    await coordinator.report(worker, [done(claim)])
    assert await coordinator.claim(worker, limit=9) == []
    named = {claim.name for claim in await coordinator.claim(worker, limit=9, reserved_for=77)}
    assert named == {"follows", "added"}


async def test_a_cancelled_job_hands_out_nothing_and_takes_no_report(coordinator: Coordinator, worker: int) -> None:
    job = await coordinator.submit(submission(make("a"), make("b") >> make("c")))
    claim = await claim_one(coordinator, worker)
    assert await coordinator.cancel(job.id)
    assert not await coordinator.cancel(job.id)
    assert not await coordinator.cancel(12345)
    assert await coordinator.claim(worker, limit=9) == []
    assert not (await coordinator.report(worker, [done(claim)])).accepted
    assert await coordinator.release(worker, [claim]) == set()
    ended = await look(coordinator, job)
    assert (ended.status, ended.open_tasks) == ("cancelled", 0)
    with pytest.raises(JobEnded):
        await coordinator.submit(gather(job.id, [make("late")]))


async def test_a_released_task_of_a_reserved_job_stays_with_it(coordinator: Coordinator, worker: int) -> None:
    job = await coordinator.submit(submission(make("a"), make("b")))
    claim = await claim_one(coordinator, worker)
    await coordinator.reserve(job.id, 77)
    await coordinator.release(worker, [claim])
    assert await coordinator.claim(worker, limit=9) == []
    assert [claim.name for claim in await coordinator.claim(worker, limit=9, reserved_for=77)] == ["a", "b"]
