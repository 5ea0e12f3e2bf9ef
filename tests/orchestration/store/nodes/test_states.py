"""Closing, emptying, opening and removing nodes, also while their workers claim and report."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from aaiclick.errors import Conflict
from aaiclick.orchestration.models import Claim, Worker
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.nodes import NodeState
from aaiclick.orchestration.store.definitions.fleet_tables import nodes
from aaiclick.orchestration.store.nodes.states import Removed, remove_node, set_state
from aaiclick.orchestration.store.reading.nodes import get_node
from aaiclick.orchestration.store.tables import claims, events, runs
from aaiclick.orchestration.store.transitions import lock_tasks
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra, done, expire, make

__all__ = ["band"]


async def on_node(band: Orchestra, name: str = "box") -> Worker:
    """A new worker on that node, which is the one that claims from now on."""
    worker = await band.coordinator.register(hostname="there", pid=2, node=NodeDescription(name))
    band.worker = worker.id
    return worker


async def change(band: Orchestra, state: NodeState, name: str = "box") -> NodeState | None:
    return await band.database.transact(lambda session: set_state(session, name, state))


async def remove(band: Orchestra, *, force: bool = False, losses_max: int = 9) -> Removed | None:
    return await band.database.transact(lambda session: remove_node(session, "box", losses_max, force=force))


async def claim_one(band: Orchestra) -> Claim:
    (claim,) = await band.claim(1, begins=1)
    return claim


async def test_a_cordoned_node_finishes_what_it_runs_and_takes_nothing_until_it_is_opened(band: Orchestra) -> None:
    worker = await on_node(band)
    await band.submit(make("a"), make("b"))
    running = await claim_one(band)
    assert await change(band, NodeState.CORDONED) == "open"
    assert await band.claim() == []
    orders = await band.coordinator.beat(worker.id)
    assert (orders.alive, orders.drain) == (True, False)
    assert (await band.complete(running)).accepted
    assert await change(band, NodeState.OPEN) == "cordoned"
    assert [claim.name for claim in await band.claim()] == ["b"]
    assert await band.violations() == []


async def test_the_workers_of_a_node_that_drains_are_asked_to_leave_and_take_nothing(band: Orchestra) -> None:
    worker, other = await on_node(band), band.worker
    other = (await band.coordinator.register(hostname="there", pid=3, node=NodeDescription("other"))).id
    await band.submit(make("a"))
    await change(band, NodeState.DRAINING)
    assert await band.claim() == []
    assert (await band.coordinator.beat(worker.id)).drain
    assert not (await band.coordinator.beat(other)).drain
    band.worker = other
    assert [claim.name for claim in await band.claim()] == ["a"]


async def test_there_is_no_such_node(band: Orchestra) -> None:
    assert await change(band, NodeState.OPEN) is None
    assert await remove(band) is None


async def test_what_a_node_held_is_freed_with_it_and_the_events_say_why(band: Orchestra) -> None:
    worker = await on_node(band)
    await band.submit(make("begun"), make("waits", priority=-1))
    begun = await claim_one(band)
    await band.claim(1)
    with pytest.raises(Conflict, match="1 of its workers are alive"):
        await remove(band)
    assert await remove(band, force=True) == Removed(sessions=1, claims=2)
    assert await band.rows(select(nodes)) == await band.rows(select(claims)) == []
    assert await band.ready_names() == ["begun", "waits"]
    assert (await band.task(begun)).lost_count == 1
    told = await band.rows(select(events.c.detail, events.c.worker_id).where(events.c.move == "recover"))
    assert [tuple(row) for row in told] == [("node 'box' was removed", worker.id)] * 2
    errors = [row.error for row in await band.rows(select(runs.c.error))]
    assert all("(node 'box' was removed)" in error for error in errors)
    assert not (await band.complete(begun)).accepted
    assert not (await band.coordinator.beat(worker.id)).alive
    assert await band.violations() == []


async def test_a_node_whose_sessions_are_past_their_end_is_removed_before_anybody_swept_them(band: Orchestra) -> None:
    await on_node(band)
    await band.submit(make("t"))
    await claim_one(band)
    await expire(band)
    assert await remove(band) == Removed(sessions=1, claims=1)
    assert await band.ready_names() == ["t"]


async def test_a_task_that_was_lost_too_often_is_given_up_with_the_node(band: Orchestra) -> None:
    await on_node(band)
    job = await band.submit(make("t"))
    await claim_one(band)
    assert await remove(band, force=True, losses_max=1) == Removed(1, 1)
    assert await band.statuses(job) == {"t": "failed"}
    assert (await band.job(job)).status == "failed"


async def test_a_removed_node_that_was_alive_comes_back_as_a_new_one(band: Orchestra) -> None:
    worker = await on_node(band)
    await remove(band, force=True)
    again = await on_node(band)
    assert again.node_id != worker.node_id
    found = await band.database.read(lambda session: get_node(session, "box"))
    assert found is not None
    assert (found.workers, found.status, found.state) == (1, "healthy", "open")


@SERVERS
async def test_a_report_and_a_removal_at_once_count_the_run_once(band: Orchestra) -> None:
    """The removal waits for the report, which then has completed the task."""
    await on_node(band)
    job = await band.submit(make("t"))
    claim = await claim_one(band)
    async with band.transaction() as session:
        await lock_tasks(session, [claim.task_id])
        removing = asyncio.create_task(remove(band, force=True))
        await band.until_waiting()
        reporting = asyncio.create_task(band.report(done(claim)))
        await band.until_waiting(2)
    removed, receipt = await asyncio.gather(removing, reporting)
    assert removed is not None
    accepted = bool(receipt.accepted)
    assert removed.claims == (0 if accepted else 1)
    assert await band.statuses(job) == {"t": "completed" if accepted else "pending"}
    assert await band.violations() == []


@SERVERS
async def test_a_claim_and_a_cordon_at_once(band: Orchestra) -> None:
    """The claim does not wait for whoever changes the node; what it takes before the commit is the node's."""
    await on_node(band)
    await band.submit(make("a"), make("b"))
    async with band.transaction() as session:
        assert await set_state(session, "box", NodeState.CORDONED) == "open"
        assert [claim.name for claim in await band.claim(1)] == ["a"]
    assert await band.claim(1) == []
