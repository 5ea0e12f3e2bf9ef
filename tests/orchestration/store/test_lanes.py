"""Lanes that a transaction needs which holds locks: they are made in another one, and it begins again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from aaiclick.orchestration.rules.lanes import PLAIN, KnownLanes
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.lanes import LanesWanted, intern_lanes, lanes_of, needs_of_lanes
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import gone_jobs
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra

__all__ = ["band"]

GPU, ZONE = {"gpu": 1}, {"zone": "ü"}


async def test_what_it_did_before_is_undone_and_done_again_once_the_lanes_are_there(band: Orchestra) -> None:
    tries: list[int] = []

    async def work(session: Session) -> list[int]:
        tries.append(1)
        await session.run(insert(gone_jobs).values(job_id=7))
        return await lanes_of(session, [GPU, {}, ZONE, GPU])

    first, plain, second, again = await band.database.transact(work)
    assert (plain, first, len({first, second, PLAIN})) == (PLAIN, again, 3)
    assert len(tries) == 2
    assert await band.scalar(select(func.count()).select_from(gone_jobs)) == 1
    assert await band.database.transact(lambda session: intern_lanes(session, [ZONE, GPU])) == [second, first]


async def test_lanes_that_are_there_are_read_once(band: Orchestra) -> None:
    (gpu,) = await band.database.transact(lambda session: intern_lanes(session, [GPU]))
    async with band.transaction() as session:
        assert await lanes_of(session, [GPU]) == [gpu]
        assert await needs_of_lanes(session, [gpu, PLAIN]) == {gpu: GPU}
        with pytest.raises(LanesWanted, match="2 lanes"):
            await lanes_of(session, [{"n": 1}, GPU, {"n": 2}, {"n": 1}])
    nowhere: Any = None
    known = Session(nowhere, nowhere, lanes=band.database.lanes)
    assert await lanes_of(known, [GPU, {}]) == [gpu, PLAIN]
    assert await needs_of_lanes(known, [gpu]) == {gpu: GPU}


async def test_what_another_process_made_is_found(band: Orchestra) -> None:
    (gpu,) = await band.database.transact(lambda session: intern_lanes(session, [GPU]))
    band.database.lanes = KnownLanes()
    assert await band.database.read(lambda session: needs_of_lanes(session, [gpu])) == {gpu: GPU}
    assert await band.database.read(lambda session: needs_of_lanes(session, [gpu + 1])) == {}


@SERVERS
async def test_several_that_want_the_same_at_once_get_the_same(band: Orchestra) -> None:
    needs = [{"n": number} for number in range(4)]

    async def want(first: int) -> list[int]:
        return await band.database.transact(lambda session: lanes_of(session, needs[first:]))

    found = await asyncio.gather(*map(want, (0, 1, 0, 2)))
    assert found[0] == found[2]
    assert (found[1], found[3]) == (found[0][1:], found[0][2:])
    assert await band.scalar(select(func.count()).select_from(lanes)) == 4
