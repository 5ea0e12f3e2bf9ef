"""One conformance suite for whoever coordinates: what execution may rely on, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import pytest

from aaiclick.errors import CircularDependencyError, JobEnded, NotFound
from aaiclick.ids import new_ids
from aaiclick.orchestration.bus.local import LocalBus
from aaiclick.orchestration.coordinator.contract import JobCoordinator as Coordinator
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Claim, Group, Job
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.naming.hints import READY
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.values.run_tables import run_table
from aaiclick.orchestration.store.database import Database
from tests.support.carried import CarriedCoordinator
from tests.support.orchestra import done, failure, make


@asynccontextmanager
async def direct(url: str) -> AsyncIterator[Coordinator]:
    database = await Database.open(url)
    bus = LocalBus(url)
    try:
        yield DirectCoordinator(database, draw=lambda: 1.0, bus=bus)
    finally:
        await bus.close()
        await database.close()


@asynccontextmanager
async def carried(url: str) -> AsyncIterator[Coordinator]:
    """Nothing goes to it, or comes from it, that could not travel between processes."""
    async with direct(url) as there:
        yield CarriedCoordinator(there)


IMPLEMENTATIONS: dict[str, Callable[[str], AbstractAsyncContextManager[Coordinator]]] = {
    "carried": carried,
    "direct": direct,
}


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
async def coordinator(request: pytest.FixtureRequest, migrated_sql_url: str) -> AsyncIterator[Coordinator]:
    async with IMPLEMENTATIONS[request.param](migrated_sql_url) as opened:
        yield opened


@pytest.fixture
async def worker(coordinator: Coordinator) -> int:
    return (await coordinator.register(hostname="here", pid=1, name="w")).id


def submission(*nodes: Node, **options: object) -> Submission:
    job = new_job("job", **options)  # type: ignore[arg-type]
    graph = gather(job.id, nodes)
    graph.new_job = job
    return graph


async def look(coordinator: Coordinator, job: Job) -> Job:
    found = await coordinator.job(job.id)
    assert found is not None
    return found


async def claim_one(coordinator: Coordinator, worker: int) -> Claim:
    (claim,) = await coordinator.claim(worker, limit=1)
    return claim


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


async def test_the_slots_are_those_of_workers_that_take_tasks(coordinator: Coordinator) -> None:
    assert await coordinator.slots() == 0
    first = await coordinator.register(hostname="here", pid=1, concurrency=4)
    await coordinator.register(hostname="here", pid=2, concurrency=3)
    await coordinator.register(hostname="here", pid=3, concurrency=0)
    assert await coordinator.slots() == 7
    await coordinator.deregister(first.id)
    assert await coordinator.slots() == 3


# ---------------------------------------------------------------- claim and report


async def test_a_claim_is_given_once_with_an_epoch_that_grows(coordinator: Coordinator, worker: int) -> None:
    await coordinator.submit(submission(make("a"), make("b")))
    one = await coordinator.claim(worker, limit=1)
    two = await coordinator.claim(worker, limit=5)
    assert [claim.name for claim in (*one, *two)] == ["a", "b"]
    assert await coordinator.claim(worker, limit=5) == []
    assert await coordinator.release(worker, one) == {one[0].task_id}
    assert await coordinator.release(worker, one) == set()
    assert (await claim_one(coordinator, worker)).epoch > one[0].epoch


async def test_a_report_readies_what_waited_and_ends_the_job(coordinator: Coordinator, worker: int) -> None:
    group = Group("g")
    inside, after = make("inside", group_id=group.id), make("after")
    first = make("first")
    first >> group >> after
    job = await coordinator.submit(submission(first, group, inside, after))
    for name in ("first", "inside", "after"):
        assert (await look(coordinator, job)).completed_at is None
        (claim,) = await coordinator.claim(worker, limit=10)
        assert claim.name == name
        receipt = await coordinator.report(worker, [done(claim, '{"x":1}')])
        assert receipt.accepted == {(claim.task_id, claim.epoch)}
    ended = await look(coordinator, job)
    assert (ended.status, ended.open_tasks, ended.completed_tasks) == ("completed", 0, 3)


async def test_stale_reports_are_refused_and_repeated_ones_answered_the_same(
    coordinator: Coordinator, worker: int
) -> None:
    await coordinator.submit(submission(make("a"), make("b")))
    claim = await claim_one(coordinator, worker)
    other = (await coordinator.register(hostname="there", pid=2)).id
    assert not (await coordinator.report(other, [done(claim)])).accepted
    assert not (await coordinator.report(worker, [replace(done(claim), epoch=claim.epoch + 1)])).accepted
    for _ in range(2):
        assert (await coordinator.report(worker, [done(claim)])).accepted == {(claim.task_id, claim.epoch)}
    assert not (await coordinator.report(worker, [failure(claim)])).accepted
    assert not (await coordinator.report(worker, [])).accepted


async def test_a_run_that_says_something_else_than_before_is_in_conflict_and_the_others_count(
    coordinator: Coordinator, worker: int
) -> None:
    job = await coordinator.submit(submission(*map(make, ("told", "failed", "late", "fine"))))
    told, failed, late, fine = await coordinator.claim(worker, limit=9)
    await coordinator.report(worker, [done(told, '"first"'), failure(failed)])
    await coordinator.release(worker, [late])
    receipt = await coordinator.report(worker, [done(told, '"second"'), done(failed), done(late), done(fine)])
    assert receipt.accepted == {(fine.task_id, fine.epoch)}
    assert receipt.conflicts == {(told.task_id, told.epoch), (failed.task_id, failed.epoch)}
    repeated = await coordinator.report(worker, [done(told, '"first"'), failure(failed), done(late), done(fine)])
    assert repeated.accepted == {(claim.task_id, claim.epoch) for claim in (told, failed, fine)}
    assert not repeated.conflicts
    found = await look(coordinator, job)
    assert (found.completed_tasks, found.failed_tasks, found.open_tasks) == (2, 1, 1)


async def test_a_failure_is_tried_again_after_its_delay_and_then_given_up(
    coordinator: Coordinator, worker: int
) -> None:
    job = await coordinator.submit(submission(make("a", retry=RetryPolicy(1, delay_s=0.01, jitter=False))))
    await coordinator.report(worker, [failure(await claim_one(coordinator, worker))])
    while not (claims := await coordinator.claim(worker, limit=1)):
        await coordinator.reconcile(job.id)
    assert claims[0].attempt == 1
    await coordinator.report(worker, [failure(claims[0], "the last")])
    ended = await look(coordinator, job)
    assert (ended.status, ended.error, ended.failed_tasks) == ("failed", "the last", 1)
    assert await coordinator.reconcile() is None


async def test_reconcile_says_how_long_until_something_is_due(coordinator: Coordinator, worker: int) -> None:
    assert await coordinator.reconcile() is None
    await coordinator.submit(submission(make("a", retry=RetryPolicy(1, delay_s=100, jitter=False))))
    await coordinator.report(worker, [failure(await claim_one(coordinator, worker))])
    due_s = await coordinator.reconcile()
    assert due_s is not None
    assert 0 < due_s <= 100


# ---------------------------------------------------------------- ids, hints and tables


async def test_ids_are_granted_again_and_again(coordinator: Coordinator) -> None:
    for _ in range(2):
        await coordinator.grant_ids()
        assert len(set(new_ids(100))) == 100


async def test_a_hint_is_heard_once_and_none_when_the_time_is_up(coordinator: Coordinator) -> None:
    assert await coordinator.wait_for_hints(0.001) == frozenset()
    await coordinator.submit(submission(make("a")))
    heard: set[str] = set()
    async with asyncio.timeout(20):
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


async def test_a_worker_is_given_tasks_of_the_lanes_that_it_serves(coordinator: Coordinator, worker: int) -> None:
    await coordinator.submit(submission(make("a"), make("b")))
    assert await coordinator.claim(worker, limit=1, lanes=()) == []
    assert await coordinator.claim(worker, limit=1, lanes=(5, 3)) == []
    assert [claim.name for claim in await coordinator.claim(worker, limit=1, lanes=(5, 0))] == ["a"]
    assert [claim.name for claim in await coordinator.claim(worker, limit=1)] == ["b"]


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
