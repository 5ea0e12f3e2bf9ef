"""Dropping registered tables in ClickHouse that have no reference left. All other code only ends its references.

A table is marked in the database before it is dropped, and its row is deleted afterwards, so the next round continues
after a crash at any point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aaiclick.backend import get_ch_url
from aaiclick.backoff import Backoffs
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.tables.lifetimes import drop as drop
from aaiclick.errors import DataRefused
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.retention import table_drops

ROUNDS_MAX = 1_000
"""Transactions, and batches of tables, that one round may take."""


class TableDropper:
    """Drops tables that are no longer needed, and logs those that ClickHouse refuses to drop."""

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self.database = database
        self._backoffs = Backoffs(clock)

    async def free_strays(self) -> int:
        """End the references of runs whose workers are gone; return how many."""
        return await self.database.transact(table_drops.free_strays)

    async def free_idle_pins(self) -> int:
        """End the pins of tasks that have ended without using the pinned tables; return how many."""
        return await self.database.transact(table_drops.free_idle_pins)

    async def drop_unneeded(self) -> int:
        """Mark tables that have no reference left, drop all marked ones, and return how many were dropped."""
        for _ in range(ROUNDS_MAX):
            if not await self.database.transact(table_drops.mark_unneeded):
                break
        names = await self.database.read(table_drops.next_to_drop)
        if not names:
            return 0
        url = get_ch_url()
        client = await open_client(url)
        try:
            return await self._drop_all(client, names)
        finally:
            await close_client(url)

    async def _drop_all(self, client: DataClient, names: Sequence[str]) -> int:
        dropped = 0
        for _ in range(ROUNDS_MAX):
            gone = [name for name in names if await drop_or_leave(client, name, self._backoffs)]
            await self.database.transact(partial(table_drops.forget_tables, names=gone))
            dropped += len(gone)
            names = await self.database.read(partial(table_drops.next_to_drop, after=names[-1]))
            if not names:
                break
        return dropped


async def drop_or_leave(client: DataClient, name: str, backoffs: Backoffs) -> bool:
    """Drop a table and return True; return False if ClickHouse refuses, and leave it for the next round."""
    try:
        await drop(client, name)
    except DataRefused as error:
        backoffs.of(name).met(f"dropping table {name}", error, "it is tried again in the next round")
        return False
    backoffs.over(name)
    return True
