"""Where tasks stand: each in one place, and in no other."""

from __future__ import annotations

from sqlalchemy import delete, select, update

from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.store.moves.queue_repair import repair_queue
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, delayed, ready, tasks
from tests.support.band import band
from tests.support.orchestra import Orchestra, make

__all__ = ["band"]


async def test_places_are_rebuilt_from_the_tasks_alone(band: Orchestra) -> None:
    first, second = make("first"), make("second", priority=3)
    slow = make("slow", retry=RetryPolicy(1, delay_s=100), priority=9)
    job = await band.submit(slow)
    await band.fail(*(await band.claim()))
    await band.apply(job, make("held", priority=20))
    await band.claim()
    await band.apply(job, first, second)

    async def mend(session: Session) -> list[str]:
        ids = [row.id for row in await session.rows(select(tasks.c.id))]
        return await repair_queue(session, job.id, ids)

    assert await band.database.transact(mend) == []
    async with band.transaction() as session:
        for table in (ready, delayed, claims):
            await session.run(delete(table))
    words = await band.database.transact(mend)
    assert sorted(word.split(" was ")[1] for word in words) == [
        "not among the delayed",
        "not claimed",
        "not in the queue",
        "not in the queue",
    ]
    assert await band.ready_names() == ["second", "first"]
    async with band.transaction() as session:
        await session.run(update(tasks).where(tasks.c.name == "first").values(unmet_count=1))
    assert await band.database.transact(mend) == [f"task {first.id} was in the queue"]
    assert await band.ready_names() == ["second"]
    assert await band.database.transact(lambda session: repair_queue(session, job.id, [])) == []
