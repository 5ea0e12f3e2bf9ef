"""A body asks its worker while it runs: for ids, from any thread, and is stopped all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.ids import new_id
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from tests.support import asking
from tests.support.bodies import claim_of, result_in
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
