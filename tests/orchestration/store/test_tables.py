"""The tables: what the databases were told to do with them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Text, func, select, text, update

from aaiclick.errors import Conflict
from aaiclick.orchestration.models import Group
from aaiclick.orchestration.store import tables
from aaiclick.orchestration.store.tables import jobs, metadata
from tests.support.orchestra import Orchestra, make, orchestra, until

postgres_only = pytest.mark.parametrize("dialect", ["postgres"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


def test_no_foreign_key_leads_from_one_row_to_another() -> None:
    """It would lock the job's row at every claim, and make MultiXacts (pitfall T36)."""
    assert [key for table in metadata.tables.values() for key in table.foreign_keys] == []


async def test_the_database_has_no_foreign_key_either(stage: Orchestra) -> None:
    asked = "SELECT count(*) FROM information_schema.table_constraints WHERE constraint_type = 'FOREIGN KEY'"
    if stage.database.dialect.name == "sqlite":
        asked = "SELECT count(*) FROM sqlite_master, pragma_foreign_key_list(sqlite_master.name) WHERE type = 'table'"
    elif stage.database.dialect.name == "mariadb":
        asked += " AND table_schema = DATABASE()"
    assert await stage.scalar(text(asked)) == 0


def test_no_clock_and_no_state_is_in_a_constraint_or_an_index_of_tasks() -> None:
    """A clock would freeze rows (pitfall T6); an index on the status would end HOT updates."""
    indexed = {column.name for index in tables.tasks.indexes for column in index.columns}
    assert indexed == {"id", "job_id", "group_id", "parent_task_id"}
    assert not [check for table in metadata.tables.values() for check in table.constraints if hasattr(check, "sqltext")]


NAMES = ["Alpha", "alpha", "älpha", "alpha ", "alpha\t", "ALPHA", "\uff41lpha"]


async def test_names_that_differ_in_case_accent_or_a_trailing_blank_are_different(stage: Orchestra) -> None:
    """MariaDB's default collation takes them for one (pitfall T20)."""
    for name in NAMES:
        job = await stage.submit(make())
        async with stage.transaction() as session:
            await session.run(update(jobs).where(jobs.c.id == job.id).values(name=name))
    for name in NAMES:
        assert await stage.scalar(select(func.count()).where(jobs.c.name == name)) == 1
    assert await stage.scalar(select(func.count(jobs.c.name.distinct()))) == len(NAMES)


async def test_keys_of_jobs_are_compared_exactly_too(stage: Orchestra) -> None:
    first = await stage.submit(make("t"), key="Key")
    others = [await stage.submit(make("t"), key=key) for key in ("key", "Kéy", "KEY")]
    assert len({first.id, *(job.id for job in others)}) == 4
    again = await stage.submit(make("t"), key="Key")
    assert again.id == first.id


async def test_a_key_is_taken_once(stage: Orchestra) -> None:
    await stage.submit(make("t"), key="k")
    changed = "UPDATE jobs SET key_digest = 'of something else'"
    if stage.database.dialect.name == "mariadb":
        changed = changed.replace("SET key", "SET `key").replace("digest", "digest`")
    await stage.database.transact(lambda session: session.run(text(changed)))
    with pytest.raises(Conflict, match="has that key"):
        await stage.submit(make("t"), key="k")


@postgres_only
async def test_updates_of_tasks_leave_the_indexes_alone(stage: Orchestra) -> None:
    """With room on the page and no index on what changes, nearly all updates are HOT (pitfall T36)."""
    asked = text("SELECT n_tup_upd AS made, n_tup_hot_upd AS hot FROM pg_stat_user_tables WHERE relname = 'tasks'")
    (before,) = await stage.rows(asked)
    source, group = make("source"), Group("g")
    source >> group
    await stage.submit(source, group, *(make(f"t{number}", group_id=group.id) for number in range(300)))
    await stage.drain(limit=50)
    await stage.database.close()  # what a connection did is counted when it ends, at the latest

    async def counted() -> bool:
        return bool((await stage.rows(asked))[0].made >= before.made + 900)

    await until(counted)
    (after,) = await stage.rows(asked)
    assert after.hot - before.hot > (after.made - before.made) * 0.5


@postgres_only
async def test_hot_tables_are_vacuumed_early_and_rows_that_change_have_room(stage: Orchestra) -> None:
    rows = await stage.rows(text("SELECT relname, reloptions FROM pg_class WHERE relkind = 'r'"))
    options = {row.relname: " ".join(row.reloptions or []) for row in rows}
    for name in ("jobs", "groups", "tasks", "ready", "delayed", "claims", "workers"):
        assert "autovacuum_vacuum_scale_factor=0.02" in options[name]
    for name in ("jobs", "groups", "tasks", "workers"):
        assert "fillfactor=50" in options[name]


@pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)
async def test_every_table_of_mariadb_is_transactional_and_compares_exactly(stage: Orchestra) -> None:
    rows = await stage.rows(
        text(
            "SELECT table_name AS name, engine, table_collation AS collation FROM information_schema.tables"
            " WHERE table_schema = DATABASE()"
        )
    )
    found = {row.name: (row.engine, row.collation) for row in rows}
    assert {name: found[name] for name in metadata.tables} == dict.fromkeys(
        metadata.tables, ("InnoDB", "utf8mb4_nopad_bin")
    )


def test_texts_of_users_are_never_short() -> None:
    long = [tables.tasks.c.error, tables.jobs.c.error, tables.runs.c.traceback, tables.events.c.detail]
    assert all(isinstance(column.type, Text) for column in long)
