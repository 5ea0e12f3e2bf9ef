"""Rows that may be there already."""

from __future__ import annotations

import asyncio

from sqlalchemy import delete

from aaiclick.orchestration.store.absent import insert_absent, insert_or_change
from aaiclick.orchestration.store.tables import table_pin_refs
from tests.support.band import SERVERS, band
from tests.support.orchestra import Orchestra
from tests.support.tables import pins

__all__ = ["band"]


def pin(table: str, *, freed: bool) -> dict[str, object]:
    return {"task_id": 1, "table_name": table, "freed": freed}


async def write(band: Orchestra, *rows: dict[str, object], change: bool) -> None:
    if change:
        await band.database.transact(lambda session: insert_or_change(session, table_pin_refs, rows, "freed"))
    else:
        await band.database.transact(lambda session: insert_absent(session, table_pin_refs, rows))


async def test_a_row_that_is_there_stays_as_it_is(band: Orchestra) -> None:
    await write(band, pin("a", freed=True), change=False)
    await write(band, pin("a", freed=False), pin("b", freed=False), change=False)
    assert await pins(band) == {(1, "b")}
    await write(band, change=False)


async def test_a_row_that_is_there_is_changed(band: Orchestra) -> None:
    await write(band, pin("a", freed=True), change=True)
    assert await pins(band) == set()
    await write(band, pin("a", freed=False), pin("b", freed=False), change=True)
    assert await pins(band) == {(1, "a"), (1, "b")}
    await write(band, change=True)


@SERVERS
async def test_a_row_that_someone_deletes_meanwhile_is_there_again(band: Orchestra) -> None:
    await write(band, pin("a", freed=True), change=True)
    async with band.transaction() as session:
        await session.run(delete(table_pin_refs))
        changing = asyncio.create_task(write(band, pin("a", freed=False), change=True))
        await band.until_waiting()
    await changing
    assert await pins(band) == {(1, "a")}


@SERVERS
async def test_a_row_that_was_changed_meanwhile_is_not_deleted(band: Orchestra) -> None:
    await write(band, pin("a", freed=True), change=True)

    async def delete_freed() -> None:
        gone = delete(table_pin_refs).where(table_pin_refs.c.freed)
        await band.database.transact(lambda session: session.run(gone))

    async with band.transaction() as session:
        await insert_or_change(session, table_pin_refs, [pin("a", freed=False)], "freed")
        deleting = asyncio.create_task(delete_freed())
        await band.until_waiting()
    await deleting
    assert await pins(band) == {(1, "a")}
