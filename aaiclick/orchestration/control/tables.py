"""Tables that nobody needs any more are dropped here, and by nobody else: others only say that they need them no more.

A crash at any point is taken up by the next round: a table is marked before it is dropped, and forgotten afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from aaiclick.backend import get_ch_url
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.lifetimes import drop as drop
from aaiclick.errors import AaiclickError, DataRefused
from aaiclick.orchestration.store import table_drops
from aaiclick.orchestration.store.database import Database
from aaiclick.trouble import Trouble

log = logging.getLogger("aaiclick")

ROUNDS_MAX = 1_000
"""Transactions, and batches of tables, that one round may take."""


class TableDropper:
    """Drops what may go, and says so where it cannot."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._trouble = Trouble()

    async def free_strays(self) -> int:
        """End the references of runs whose workers are gone."""
        return await self.database.transact(table_drops.free_strays)

    async def free_idle_pins(self) -> int:
        """End the pins of tasks that have ended without using what was pinned for them."""
        return await self.database.transact(table_drops.free_idle_pins)

    async def drop_unneeded(self) -> int:
        """Look at what references have left, and drop what nobody needs; gives the number of tables."""
        try:
            dropped = await drop_unneeded_tables(self.database)
        except AaiclickError as error:  # ClickHouse is away: there are other things to repair
            self._trouble.met("dropping tables", error)
            return 0
        self._trouble.over()
        return dropped


async def drop_unneeded_tables(database: Database) -> int:
    """Look at what references have left, and drop what nobody needs."""
    for _ in range(ROUNDS_MAX):
        if not await database.transact(table_drops.mark_unneeded):
            break
    names = await database.read(table_drops.next_to_drop)
    if not names:
        return 0
    url = get_ch_url()
    client = await open_client(url)
    try:
        return await _drop_all(database, client, names)
    finally:
        await close_client(url)


async def _drop_all(database: Database, client: DataClient, names: Sequence[str]) -> int:
    dropped = 0
    for _ in range(ROUNDS_MAX):
        gone = [name for name in names if await _is_dropped(client, name)]
        await database.transact(partial(table_drops.forget_tables, names=gone))
        dropped += len(gone)
        names = await database.read(partial(table_drops.next_to_drop, after=names[-1]))
        if not names:
            break
    return dropped


async def _is_dropped(client: DataClient, name: str) -> bool:
    """A table that ClickHouse refuses to drop is left for the next round; the others go."""
    try:
        await drop(client, name)
    except DataRefused as error:
        log.warning("table %s cannot be dropped: %s", name, error)
        return False
    return True
