"""What is in ClickHouse, and what the state knows of it."""

from __future__ import annotations

from sqlalchemy import select

from aaiclick.data import data_context
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.store.tables import table_context_refs, table_pin_refs, table_run_refs

REFERENCES = (table_context_refs, table_run_refs, table_pin_refs)


async def tables() -> list[str]:
    """The tables in ClickHouse."""
    async with data_context() as context:
        found = await context.client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
        return sorted(found.columns[0])


async def comments() -> dict[str, str]:
    """What is written on each table."""
    async with data_context() as context:
        query = "SELECT name, comment FROM system.tables WHERE database = currentDatabase()"
        return dict(zip(*(await context.client.rows(query)).columns, strict=True))


async def references() -> int:
    """How many rows there are about tables."""
    async with connected() as database:
        return sum(
            [
                len(await database.read(lambda session, table=table: session.rows(select(table))))  # type: ignore[misc]
                for table in REFERENCES
            ]
        )


async def tidy() -> None:
    """What whoever leads does about tables, all of it."""
    async with connected() as database:
        dropper = TableDropper(database)
        while await dropper.free_strays() or await dropper.free_idle_pins():
            pass
        await dropper.drop_unneeded()
