"""References to tables on MariaDB."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aaiclick.orchestration.store.dialects import mariadb_tables
from aaiclick.orchestration.store.dialects.contract import driver_of
from aaiclick.orchestration.store.dialects.table_moves import Changes
from aaiclick.orchestration.store.session import Session
from tests.support.orchestra import Orchestra, orchestra
from tests.support.tables import pins

pytestmark = pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def test_of_what_is_written_together_all_is_undone_by_an_error(stage: Orchestra) -> None:
    async def work(session: Session) -> None:
        await session.dialect.tables.change(session, Changes(pinned=[(1, "a")], unpinned=[(2, "b")]))
        await mariadb_tables._together(session, {mariadb_tables._PIN: [(3, "c")], "no %s statement": [1]})

    with pytest.raises(Exception, match="1064"):
        await stage.database.transact(work)
    assert await pins(stage) == set()


async def test_each_row_is_found_by_its_whole_key(stage: Orchestra) -> None:
    """Whoever reads all of a table waits for every row that others have locked."""
    for statement in (mariadb_tables._UNPIN, mariadb_tables._FREE, mariadb_tables._GONE):
        async with stage.transaction() as session, driver_of(session.connection).cursor() as cursor:
            await cursor.execute(f"EXPLAIN {statement}", ["[]"])
            plan = {row[2]: row for row in await cursor.fetchall()}
        (found,) = [row for name, row in plan.items() if name in ("pin", "ref")]
        assert (found[3], found[5]) == ("eq_ref", "PRIMARY")


async def test_a_value_with_quotes_and_percents_is_a_value(stage: Orchestra) -> None:
    moves = stage.database.dialect.tables
    odd = "a'b\"c%s\\d"
    await stage.database.transact(lambda session: moves.change(session, Changes(pinned=[(1, odd)], freed=[(1, "x")])))
    assert await pins(stage) == {(1, odd)}
