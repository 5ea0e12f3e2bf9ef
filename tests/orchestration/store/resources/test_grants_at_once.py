"""Capacities that change while they are held, and claims, ends and changes at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.store import workers as worker_sessions
from aaiclick.orchestration.store.claims import recoveries
from aaiclick.orchestration.store.definitions.fleet_tables import resource_grants
from aaiclick.orchestration.store.resources import grants
from aaiclick.orchestration.store.resources.grants import plan_grants
from aaiclick.orchestration.store.resources.units import remove_capacity, set_capacity
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks
from tests.support.band import SERVERS, band
from tests.support.grants import TWO_GPUS, begin, capacity, claim, held, lanes_of, one
from tests.support.orchestra import Orchestra, expire, make

__all__ = ["band"]

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
