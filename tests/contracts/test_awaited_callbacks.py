"""Callbacks that runs wait for, in the conformance suite of whoever coordinates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from aaiclick.errors import ClaimLost
from aaiclick.orchestration.coordinator.contract import JobCoordinator as Coordinator
from aaiclick.orchestration.store.access.callbacks import Received, receive_callback
from aaiclick.orchestration.store.database import Database
from tests.support.coordinators import claim_one, submission
from tests.support.orchestra import done, make

Receive = Callable[[str, str], Awaitable[Received]]


@pytest.fixture
def receive(migrated_sql_url: str) -> Receive:
    """What a server does with a callback."""

    async def received(digest: str, body: str) -> Received:
        database = await Database.open(migrated_sql_url)
        try:
            return await database.transact(lambda session: receive_callback(session, digest, body))
        finally:
            await database.close()

    return received


async def test_a_repeated_call_is_answered_the_same(coordinator: Coordinator, worker: int, receive: Receive) -> None:
    """The answer to the first one may have been lost; a callback may have come between the two."""
    await coordinator.submit(submission(make("a")))
    claim = await claim_one(coordinator, worker)
    assert [await coordinator.callback(claim, "d1") for _ in range(2)] == [None, None]
    assert await receive("d1", "5") is Received.STORED
    assert [await coordinator.callback(claim, "d1") for _ in range(2)] == ["5", "5"]
    assert await coordinator.callback(claim, "") == "5"
    assert await receive("d1", "5") is Received.REPEATED, "the repeated call made no second token of it"
    assert await receive("d1", "6") is Received.USED


async def test_several_tokens_of_a_run_all_count_and_the_first_callback_is_kept(
    coordinator: Coordinator, worker: int, receive: Receive
) -> None:
    await coordinator.submit(submission(make("a")))
    claim = await claim_one(coordinator, worker)
    for digest in ("d1", "d2"):
        assert await coordinator.callback(claim, digest) is None
    assert await receive("d2", "second") is Received.STORED
    assert await coordinator.callback(claim, "") == "second"


async def test_a_run_of_another_worker_waits_for_nothing(
    coordinator: Coordinator, worker: int, receive: Receive
) -> None:
    await coordinator.submit(submission(make("a")))
    claim = await claim_one(coordinator, worker)
    other = await coordinator.register(hostname="here", pid=2, name="other")
    for foreign in (replace(claim, worker_id=other.id), replace(claim, epoch=claim.epoch + 1)):
        with pytest.raises(ClaimLost):
            await coordinator.callback(foreign, "d1")
    assert await receive("d1", "5") is Received.UNKNOWN
    assert await coordinator.callback(claim, "") is None


async def test_a_run_that_has_ended_waits_for_nothing_more(
    coordinator: Coordinator, worker: int, receive: Receive
) -> None:
    await coordinator.submit(submission(make("a")))
    claim = await claim_one(coordinator, worker)
    assert await coordinator.callback(claim, "d1") is None
    await coordinator.report(worker, [done(claim)])
    assert await receive("d1", "5") is Received.UNKNOWN
    with pytest.raises(ClaimLost):
        await coordinator.callback(claim, "d2")
