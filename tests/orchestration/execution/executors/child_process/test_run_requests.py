"""A body asks its worker while it runs: for ids, from any thread, and is stopped all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from aaiclick.errors import ClaimLost
from aaiclick.ids import new_id
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.models import CacheAnswer, CacheKey, Claim
from tests.orchestration import cached_flows
from tests.support import asking
from tests.support.bodies import claim_of, failure_in, result_in, until
from tests.support.executors import child_of, run
from tests.support.ids import assert_rising, machine_of


@pytest.mark.parametrize("body", [asking.some_ids, asking.many_ids, asking.ids_in_a_loop])
async def test_ids_of_a_child_are_the_workers(executor: ProcessExecutor, body: Callable[..., Any]) -> None:
    before = new_id()
    first = result_in(await run(executor, claim_of(body, count=500)))
    second = result_in(await run(executor, claim_of(body, count=500)))
    made = [before, *first, *second, new_id()]
    assert_rising(made)
    assert {machine_of(each) for each in made} == {machine_of(before)}


async def test_threads_of_a_body_may_ask_at_once(executor: ProcessExecutor) -> None:
    made = result_in(await run(executor, claim_of(asking.ids_on_threads, count=200, threads=8)))
    assert len(set(made)) == 1600
    assert {machine_of(each) for each in made} == {machine_of(new_id())}


async def test_a_process_that_a_body_forks_makes_ids_of_its_own(executor: ProcessExecutor) -> None:
    mine, copys = result_in(await run(executor, claim_of(asking.ids_of_a_copy)))
    assert machine_of(mine) == machine_of(new_id())
    assert machine_of(copys) != machine_of(mine)


@pytest.mark.parametrize("body", [asking.asks_until_stopped, asking.asks_until_killed])
async def test_a_stop_among_the_answers_is_heard(executor: ProcessExecutor, body: Callable[..., Any]) -> None:
    for _ in range(5):
        running = asyncio.ensure_future(run(executor, claim_of(body)))
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        assert result_in(await run(executor, claim_of(asking.some_ids, count=3)))


async def test_a_child_that_was_stopped_while_it_asked_goes_on(executor: ProcessExecutor) -> None:
    pid = await child_of(executor)
    running = asyncio.ensure_future(run(executor, claim_of(asking.asks_until_stopped)))
    await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.wait([running])
    assert await child_of(executor) == pid


# ---------------------------------------------------------------- tables


class Services:
    """Notes what is held, and refuses when told to."""

    def __init__(self) -> None:
        self.held: list[tuple[int, list[str]]] = []
        self.refuses = self.waits = False
        self.given_up = 0
        self.asked = asyncio.Event()

    async def hold(self, claim: Claim, tables: Sequence[str]) -> str:
        self.held.append((claim.task_id, list(tables)))
        self.asked.set()
        if self.refuses:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="hold on tables")
        if self.waits:
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up += 1
        return "ours"

    async def recall(self, claim: Claim, key: CacheKey) -> CacheAnswer:
        if self.refuses:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="question")
        return CacheAnswer(hit=True, result_json=f'{{"object_type": "pyobj", "value": "{key.entrypoint}"}}')

    async def slots(self) -> int:
        return 5

    async def callback(self, claim: Claim, digest: str) -> str | None:
        if self.refuses:
            raise ClaimLost(task_id=claim.task_id, epoch=claim.epoch, move="callback")
        return f"called back for {digest}"


async def test_a_body_learns_through_its_worker_how_many_slots_there_are(executor: ProcessExecutor) -> None:
    executor.services = Services()
    assert result_in(await run(executor, claim_of(asking.counts_slots))) == 5
    executor.services = None
    assert result_in(await run(executor, claim_of(asking.counts_slots))) == 0


async def test_a_body_holds_tables_through_its_worker(executor: ProcessExecutor) -> None:
    executor.services = services = Services()
    claim = claim_of(asking.holds)
    assert result_in(await run(executor, claim)) == "ours"
    assert services.held == [(claim.task_id, ["t2_1_1"])]


async def test_a_remembered_result_takes_the_place_of_the_body(executor: ProcessExecutor) -> None:
    executor.services = services = Services()
    claim = claim_of(cached_flows.double, x=4)
    assert result_in(await run(executor, claim)) == "tests.orchestration.cached_flows.double"
    services.refuses = True
    failure = failure_in(await run(executor, claim_of(cached_flows.double, x=4)))
    assert failure.error.startswith("ClaimLost: This worker no longer holds task")
    executor.services = None
    assert result_in(await run(executor, claim_of(cached_flows.double, x=4))) == 8


async def test_a_body_whose_run_is_lost_is_refused(executor: ProcessExecutor) -> None:
    executor.services = services = Services()
    services.refuses = True
    failure = failure_in(await run(executor, claim_of(asking.holds)))
    assert failure.error.startswith("ClaimLost: This worker no longer holds task")


async def test_a_body_asks_for_its_callback_through_its_worker(executor: ProcessExecutor) -> None:
    executor.services = services = Services()
    assert result_in(await run(executor, claim_of(asking.asks_for_a_callback))) == "called back for d"
    services.refuses = True
    assert "ClaimLost" in failure_in(await run(executor, claim_of(asking.asks_for_a_callback))).error


async def test_a_body_may_do_other_things_while_it_waits_for_an_answer(executor: ProcessExecutor) -> None:
    executor.services = services = Services()
    services.waits = True
    pid = await child_of(executor)
    running = asyncio.ensure_future(run(executor, claim_of(asking.holds_and_counts)))
    async with asyncio.timeout(30):
        await services.asked.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert services.given_up == 1
    assert await child_of(executor) == pid


async def test_where_nobody_keeps_account_everything_may_be_held(executor: ProcessExecutor) -> None:
    assert result_in(await run(executor, claim_of(asking.holds))) == ""


@pytest.mark.parametrize("word", ["object", "view"])
async def test_a_text_that_looks_like_the_beginning_of_a_reference_is_a_text(
    executor: ProcessExecutor, word: str
) -> None:
    executor.services = services = Services()
    assert result_in(await run(executor, claim_of(asking.in_a_loop_of_its_own, value={word: word}))) == {word: word}
    assert not services.held


async def test_a_run_is_stopped_while_its_arguments_wait_for_their_tables(executor: ProcessExecutor) -> None:
    executor.services = services = Services()
    services.waits = True
    pid = await child_of(executor)
    claim = replace(claim_of(asking.holds), kwargs_json='{"value": {"object_type": "object", "table": "t1_1_1"}}')
    running = asyncio.ensure_future(run(executor, claim))
    await until(lambda: services.held)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert services.given_up == 1
    assert await child_of(executor) == pid
