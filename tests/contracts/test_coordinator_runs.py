"""The suite for whoever coordinates (see test_coordinator.py): claims, reports, remembered results, callbacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.coordinator.contract import JobCoordinator as Coordinator
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import (
    CacheAnswer,
    CacheKey,
    Claim,
    Group,
)
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.access.callbacks import Received, receive_callback
from aaiclick.orchestration.store.database import Database
from tests.support.coordinators import claim_one, look, submission
from tests.support.orchestra import done, failure, make

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


# ---------------------------------------------------------------- lanes


async def test_a_worker_is_given_tasks_of_the_lanes_that_it_serves(coordinator: Coordinator, worker: int) -> None:
    await coordinator.submit(submission(make("a"), make("b")))
    assert await coordinator.claim(worker, limit=1, lanes=()) == []
    assert await coordinator.claim(worker, limit=1, lanes=(5, 3)) == []
    assert [claim.name for claim in await coordinator.claim(worker, limit=1, lanes=(5, 0))] == ["a"]
    assert [claim.name for claim in await coordinator.claim(worker, limit=1)] == ["b"]


async def test_a_worker_that_names_no_lanes_is_given_what_its_node_meets(coordinator: Coordinator) -> None:
    await coordinator.submit(submission(make("gpu", placement="gpu == nvidia"), make("plain")))
    ids = []
    for gpu in ("nvidia", None):
        node = NodeDescription(f"with {gpu}", capabilities={"gpu": gpu})
        ids.append((await coordinator.register(hostname="here", pid=1, node=node)).id)
    assert [claim.name for claim in await coordinator.claim(ids[1], limit=9, lanes=None)] == ["plain"]
    (claim,) = await coordinator.claim(ids[0], limit=9, lanes=None)
    assert (claim.name, claim.lane > 0) == ("gpu", True)


async def test_what_a_run_is_granted_comes_with_its_claim_and_is_kept_until_its_body_is_dead(
    coordinator: Coordinator,
) -> None:
    node = NodeDescription("box", resources={"gpu": 1, "gpu_memory_mb": 100})
    worker = (await coordinator.register(hostname="here", pid=1, node=node)).id
    first = await coordinator.submit(submission(make("first", resources={"gpu": 1}, priority=1)))
    await coordinator.submit(submission(make("second", resources={"gpu_memory_mb": 60})))
    (taken,) = await claim_all(coordinator, worker)
    assert taken.name == "first"
    (grant,) = taken.grants
    assert (grant.name, grant.slot, grant.device, grant.memory_mb) == ("gpu", 0, "0", 100)
    assert await coordinator.cancel(first.id)
    assert await claim_all(coordinator, worker) == [], "its body may go on"
    await coordinator.let_go(worker, [(taken.task_id, taken.epoch)])
    (taken,) = await claim_all(coordinator, worker)
    assert [(grant.amount, grant.memory_mb) for grant in taken.grants] == [(60_000, 60)]
    await coordinator.report(worker, [done(taken)])


async def claim_all(coordinator: Coordinator, worker: int) -> list[Claim]:
    """Claim what the worker's node may run, also if a lane was found to be taken a moment ago."""
    for _ in range(2):
        if taken := await coordinator.claim(worker, limit=9, lanes=None, begins=9):
            return taken
    return []


async def test_tasks_made_by_a_run_need_what_they_say(coordinator: Coordinator) -> None:
    await coordinator.submit(submission(make("parent")))
    node = NodeDescription("box", capabilities={"gpu": "nvidia"})
    worker = (await coordinator.register(hostname="here", pid=1, node=node)).id
    parent = await claim_one(coordinator, worker)
    made = Children.of(gather(parent.job_id, [make("child", placement="gpu == amd")]), (), None)
    assert (await coordinator.report(worker, [replace(done(parent), children=made)])).accepted
    assert await coordinator.claim(worker, limit=9, lanes=None) == []


# ---------------------------------------------------------------- remembered results


async def test_a_result_is_remembered_and_completes_another_run(coordinator: Coordinator, worker: int) -> None:
    key = CacheKey("d" * 64, "a.b", "i" * 64, ttl_s=60.0)
    await coordinator.submit(submission(make("a")))
    first = await claim_one(coordinator, worker)
    assert await coordinator.recall(first, key) == CacheAnswer(remembers=True)
    await coordinator.report(worker, [replace(done(first, "[5]"), remember=key)])
    job = await coordinator.submit(submission(make("a")))
    second = await claim_one(coordinator, worker)
    hit = CacheAnswer(hit=True, result_json="[5]")
    assert await coordinator.recall(second, key) == hit
    assert await coordinator.recall(second, key) == hit, "the first answer may have been lost"
    assert (await look(coordinator, job)).status == "completed"
    assert (await coordinator.report(worker, [done(second, "[5]")])).accepted == {(second.task_id, second.epoch)}


async def test_a_run_without_its_claim_is_given_no_result(coordinator: Coordinator, worker: int) -> None:
    await coordinator.submit(submission(make("a")))
    claim = await claim_one(coordinator, worker)
    await coordinator.release(worker, [claim])
    with pytest.raises(ClaimLost):
        await coordinator.recall(claim, CacheKey("d" * 64, "a.b", "i" * 64))


# ---------------------------------------------------------------- callbacks


async def test_what_is_called_back_counts_for_every_attempt_until_the_task_is_cleared(
    coordinator: Coordinator, worker: int, migrated_sql_url: str
) -> None:
    database = await Database.open(migrated_sql_url)

    async def receive(digest: str, body: str) -> Received:
        return await database.transact(lambda session: receive_callback(session, digest, body))

    try:
        await coordinator.submit(submission(make("a", retry=RetryPolicy(max_retries=1, delay_s=0))))
        first = await claim_one(coordinator, worker)
        assert await coordinator.callback(first, "") is None
        assert await coordinator.callback(first, "d1") is None
        await coordinator.report(worker, [failure(first)])
        assert await receive("d1", '{"x": 1}') is Received.STORED  # between two attempts
        second = await claim_one(coordinator, worker)
        assert await coordinator.callback(second, "d2") == '{"x": 1}'
        assert await receive("d1", '{"x": 1}') is Received.REPEATED
        assert await receive("d1", "other") is Received.USED
        assert await receive("d3", "x") is Received.UNKNOWN
        with pytest.raises(ClaimLost):
            await coordinator.callback(first, "d4")
        await DirectCoordinator(database).clear(second.task_id)
        assert await receive("d2", "late") is Received.UNKNOWN
        third = await claim_one(coordinator, worker)
        assert await coordinator.callback(third, "") is None
        await coordinator.report(worker, [done(third)])
    finally:
        await database.close()
