"""Everything that a database holds, to show that a refusal wrote nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sqlalchemy import select

from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import machine_ids, metadata

Contents = dict[str, list[tuple[Any, ...]]]


async def contents(database: Database) -> Contents:
    """All rows of all tables, but for the rights to make ids."""

    async def work(session: Session) -> Contents:
        wanted = [table for table in metadata.sorted_tables if table is not machine_ids]
        return {table.name: sorted(map(tuple, await session.rows(select(table))), key=repr) for table in wanted}

    return await database.read(work)


@asynccontextmanager
async def refused(database: Database, *kinds: type[Exception], match: str | None = None) -> AsyncIterator[Any]:
    """The block is refused with such an error, and leaves every table as it was; gives what was caught."""
    before = await contents(database)
    with pytest.raises(kinds, match=match) as caught:
        yield caught
    assert await contents(database) == before
