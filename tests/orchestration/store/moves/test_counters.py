"""Counters of many rows at once."""

from __future__ import annotations

from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store.moves.counters import lock_gated, shift
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import tasks
from tests.support.band import band, member
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def test_each_gets_its_own_step_and_others_none(band: Orchestra) -> None:
    one, two, three = make("one"), make("two"), make("three")
    await band.submit(one, two, three)
    await band.database.transact(lambda session: shift(session, tasks.c.awaited_count, {one.id: 2, two.id: -1}))
    assert [(await band.task(task)).awaited_count for task in (one, two, three)] == [2, -1, 0]


async def test_those_behind_a_gate_are_found(band: Orchestra) -> None:
    group, before, free = Group("g"), make("before"), make("free")
    held = member(group)
    before >> group
    await band.submit(before, group, free)

    async def work(session: Session) -> list[int]:
        return await lock_gated(session, [held.id, free.id])

    assert await band.database.transact(work) == [held.id]
