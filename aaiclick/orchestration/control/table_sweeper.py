"""Now and then: tables whose time is over are marked for the dropper, and those that nobody knows are dropped.

Nobody knows what was made by a body that outlived its run, or of which the state was lost. A table is written down
before it is made and forgotten after it was dropped: one that is in ClickHouse, and then not in the state, is nobody's.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial

from aaiclick.backend import get_ch_url
from aaiclick.backoff import Backoffs
from aaiclick.clock import SYSTEM_CLOCK, Clock
from aaiclick.config import settings
from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.sql.quoting import text
from aaiclick.data.tables.lifetimes import sweep_contexts
from aaiclick.ids import id_time
from aaiclick.orchestration.control.table_dropper import drop_or_leave
from aaiclick.orchestration.rules.values.run_tables import is_run_table, maker_of
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.retention import table_ages
from aaiclick.orchestration.store.retention.table_drops import LOOKED_AT_ONCE

log = logging.getLogger("aaiclick")

ROUNDS_MAX = 1_000
LISTED_AT_ONCE = 1_000


class TableSweeper:
    """Finds what may go, and says of which table it cannot."""

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self.database = database
        self._backoffs = Backoffs(clock)

    async def expire(self) -> int:
        """Mark what is over; the dropper drops it."""
        ttl_s, age_s = settings().job_ttl_s, settings().sweep_age_s
        total = 0
        for step in (partial(table_ages.mark_expired, ttl_s=ttl_s), partial(table_ages.mark_unclaimed, age_s=age_s)):
            for _ in range(ROUNDS_MAX):
                marked = await self.database.transact(step)
                total += marked
                if marked < LOOKED_AT_ONCE:
                    break
        return total

    async def sweep(self) -> int:
        """Drop what nobody knows, and what processes that died have left; gives the number of tables."""
        installation = await self.database.read(table_ages.known_installation)
        dropped = await sweep_contexts(get_ch_url())
        if installation is not None:  # else there never was a table of a run
            dropped += await self._sweep(installation, settings().sweep_age_s)
        return dropped

    async def _sweep(self, installation: str, age_s: float) -> int:
        before = await self.database.read(lambda session: session.now()) - timedelta(seconds=age_s)
        url = get_ch_url()
        client = await open_client(url)
        dropped, after = 0, ""
        try:
            for _ in range(ROUNDS_MAX):
                listed = await _list(client, installation, age_s, after)
                ours = [name for name in listed if is_run_table(name) and _is_older(name, before)]
                for name in await self.database.read(partial(table_ages.unknown_tables, names=ours)):
                    if await drop_or_leave(client, name, self._backoffs):
                        log.warning("table %s was known to nobody and is dropped", name)
                        dropped += 1
                if len(listed) < LISTED_AT_ONCE:
                    break
                after = listed[-1]
        finally:
            await close_client(url)
        return dropped


async def _list(client: DataClient, installation: str, age_s: float, after: str) -> list[str]:
    """Tables that carry the name of this installation, and are not young; chdb does not tell the age of a table."""
    found = await client.tables.look(
        client,
        "name",
        f"startsWith(name, 't') AND JSONExtractString(comment, 'installation') = {text(installation)}"
        f" AND metadata_modification_time <= now() - toIntervalSecond({round(age_s)})"
        f" AND name > {text(after)} ORDER BY name LIMIT {LISTED_AT_ONCE}",
    )
    return list(found.columns[0]) if found.columns else []


def _is_older(name: str, before: datetime) -> bool:
    """Whether whoever made the table is older: the table is younger than its task."""
    return id_time(maker_of(name)) <= before
