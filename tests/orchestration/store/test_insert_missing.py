"""Rows that may be there already."""

from __future__ import annotations

from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.tables import table_pin_refs
from tests.support.band import band
from tests.support.orchestra import Orchestra
from tests.support.tables import pins

__all__ = ["band"]


def pin(table: str, *, freed: bool) -> dict[str, object]:
    return {"task_id": 1, "table_name": table, "freed": freed}


async def write(band: Orchestra, *rows: dict[str, object]) -> None:
    await band.database.transact(lambda session: insert_missing(session, table_pin_refs, rows))


async def test_a_row_that_is_there_stays_as_it_is(band: Orchestra) -> None:
    await write(band, pin("a", freed=True))
    await write(band, pin("a", freed=False), pin("b", freed=False))
    assert await pins(band) == {(1, "b")}
    await write(band)
