"""Periodic clean-up of tables: expired ones are marked for the dropper, unregistered ones are dropped.

A table is unregistered if a body outlived its run and made it, or if the SQL database was lost. Tables are registered
before they are made, and their rows are deleted after they were dropped. So a table that is listed in ClickHouse first,
and then not found in the SQL database, belongs to no run.
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
    """Finds expired and unregistered tables, and logs those that ClickHouse refuses to drop."""

    def __init__(self, database: Database, clock: Clock = SYSTEM_CLOCK) -> None:
        self.database = database
        self._backoffs = Backoffs(clock)

    async def expire(self) -> int:
        """Mark tables of jobs past `job_ttl_s`, and tables registered long ago that were never referred to.

        The dropper drops them. Return how many were looked at.
        """
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
        """Drop unregistered tables, and tables of the `data_context`s of dead processes; return how many."""
        installation = await self.database.read(table_ages.known_installation)
        dropped = await sweep_contexts(get_ch_url())
        if installation is not None:  # without a name, no run has ever made a table
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
                        log.warning("table %s is unknown and is dropped", name)
                        dropped += 1
                if len(listed) < LISTED_AT_ONCE:
                    break
                after = listed[-1]
        finally:
            await close_client(url)
        return dropped


async def _list(client: DataClient, installation: str, age_s: float, after: str) -> list[str]:
    """Return names of tables that carry this installation's name and are older than `age_s`, a page after `after`.

    chdb does not know the age of a table; `_is_older` checks the ids in the names.
    """
    found = await client.tables.look(
        client,
        "name",
        f"startsWith(name, 't') AND JSONExtractString(comment, 'installation') = {text(installation)}"
        f" AND metadata_modification_time <= now() - toIntervalSecond({round(age_s)})"
        f" AND name > {text(after)} ORDER BY name LIMIT {LISTED_AT_ONCE}",
    )
    return list(found.columns[0]) if found.columns else []


def _is_older(name: str, before: datetime) -> bool:
    """Return whether the id of the table's maker, such as a task, is from before that time.

    The table itself was made after its maker.
    """
    return id_time(maker_of(name)) <= before
