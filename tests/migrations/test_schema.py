"""From nothing to the newest schema, on three databases."""

import asyncio
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import asyncmy
import asyncpg
import pytest
from asyncmy.constants import CLIENT
from sqlalchemy import event
from sqlalchemy.engine import Engine, make_url

from aaiclick.errors import Conflict, DatabaseFileError, InputError, SchemaError
from aaiclick.orchestration.store import connecting, schema
from tests.migrations.pictures import picture, run
from tests.servers.databases import Databases, without_driver
from tests.support import warm

LONG = "TEST_LONG" in os.environ

UPGRADE = (
    "import asyncio, sys; from aaiclick.orchestration.store import schema; asyncio.run(schema.upgrade(sys.argv[1]))"
)


async def test_the_tables_are_the_sum_of_the_migrations(databases: Databases) -> None:
    with databases.empty() as migrated, databases.empty() as declared:
        await schema.upgrade(migrated)
        await create_at_once(declared)
        assert await picture(migrated) == await picture(declared)


async def test_the_picture_sees_a_table_option(dialect: str, databases: Databases) -> None:
    """The proof above is only as good as what is compared."""
    change = {
        "sqlite": "DROP TABLE ready; CREATE TABLE ready (id INTEGER PRIMARY KEY)",
        "postgres": "ALTER TABLE ready SET (fillfactor = 51)",
        "mariadb": "ALTER TABLE ready COLLATE utf8mb4_general_ci",
    }
    with databases.empty() as url:
        await create_at_once(url)
        before = await picture(url)
        await run(url, *change[dialect].split(";"))
        assert await picture(url) != before


async def test_names_compare_exactly_and_hot_tables_have_room(dialect: str, migrated_sql_url: str) -> None:
    shown = str(await picture(migrated_sql_url))
    sign = {"sqlite": "('ready', 'without rowid')", "postgres": "fillfactor=50", "mariadb": "COLLATE=utf8mb4_nopad_bin"}
    assert sign[dialect] in shown


async def test_upgrading_again_changes_nothing(sql_url: str) -> None:
    assert await schema.current(sql_url) is None
    await schema.upgrade(sql_url)
    first = await picture(sql_url)
    await schema.upgrade(sql_url)
    assert await picture(sql_url) == first
    assert await schema.current(sql_url) == schema.HEAD
    await schema.check(sql_url)


def test_two_processes_may_upgrade_at_once(sql_url: str) -> None:
    at_once = [warm.Popen([sys.executable, "-c", UPGRADE, sql_url], env=environment()) for _ in range(2)]
    assert [process.wait(60) for process in at_once] == [0, 0]
    asyncio.run(schema.check(sql_url))


async def test_many_tasks_of_one_loop_may_upgrade_different_databases_at_once(databases: Databases) -> None:
    """Alembic keeps its state in module variables."""
    with databases.empty() as first, databases.empty() as second:
        await asyncio.gather(*(schema.upgrade(url) for url in (first, second, first, second)))
        assert await picture(first) == await picture(second)


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_an_upgrade_that_waits_too_long_for_another_says_so(
    sql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connecting.connect(sql_url, write=True) as other:
        await schema._lock(other, sql_url)
        monkeypatch.setattr(schema, "LOCK_WAIT_S", 0.2)
        with pytest.raises(Conflict, match="another migration has been running"):
            await schema.upgrade(sql_url)
    await schema.upgrade(sql_url)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_an_upgrade_waits_for_whoever_writes_the_file(sql_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await schema.ensure_local(sql_url)
    await run(sql_url, "UPDATE aaiclick_schema SET version_num = '0000'")
    monkeypatch.setattr(connecting, "SQLITE_WAIT_S", 0.2)
    async with connecting.connect(sql_url, write=True) as other:
        await other.exec_driver_sql("SELECT 1")
        with pytest.raises(DatabaseFileError, match="another process holds it locked"):
            await schema.upgrade(sql_url)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"], indirect=True)
async def test_an_upgrade_that_was_killed_leaves_nothing_behind(sql_url: str) -> None:
    assert kill_half_way(sql_url) == -9
    assert await schema.current(sql_url) is None
    with pytest.raises(SchemaError, match="is not there yet"):
        await schema.check(sql_url)
    await schema.upgrade(sql_url)
    await schema.check(sql_url)


@pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)
async def test_on_mariadb_an_upgrade_that_was_killed_is_noticed_and_taken_up(sql_url: str) -> None:
    assert kill_half_way(sql_url) == -9
    with pytest.raises(SchemaError, match=rf"incomplete .* needs {schema.HEAD}\. Run: aaiclick migrate upgrade head"):
        await schema.check(sql_url)
    async with connecting.connect(sql_url, write=False) as connection:
        with pytest.raises(SchemaError, match="incomplete"):
            await schema.require_current(connection)
    await schema.upgrade(sql_url)
    await schema.check(sql_url)


CUTS_MIN = 20
"""An upgrade has more statements than this, also where each attempt goes on behind the one before (MariaDB)."""


async def test_an_upgrade_cut_off_after_any_statement_can_be_repeated(databases: Databases) -> None:
    with databases.empty() as url, databases.empty() as straight:
        await schema.upgrade(straight)
        for nth in range(1, 100, 1 if LONG else 3):
            try:
                with cut_off_after(nth):
                    await schema.upgrade(url)
            except CutOff:
                continue
            break
        else:
            raise AssertionError("it never came to its end")
        assert nth > CUTS_MIN
        assert await picture(url) == await picture(straight)


async def test_the_sql_on_paper_makes_the_same_schema(dialect: str, databases: Databases) -> None:
    with databases.empty() as migrated, databases.empty() as by_hand:
        await schema.upgrade(migrated)
        await execute_script(dialect, by_hand, schema.sql(by_hand))
        assert await picture(by_hand) == await picture(migrated)
        await schema.check(by_hand)


def test_sql_on_paper_needs_no_driver_and_no_server() -> None:
    assert "CREATE TABLE jobs" in schema.sql("postgresql+asyncpg://nobody:secret@nowhere/none")
    assert "ENGINE=InnoDB" in schema.sql("mysql+asyncmy://nobody@nowhere/none")
    assert schema.sql("sqlite+aiosqlite:///none.db", f"{schema.HEAD}:head").strip() == "BEGIN;\n\nCOMMIT;"


@pytest.mark.parametrize("revision", ["hed", "", "base", "-1", "9999", "heads", "0001; DROP TABLE jobs"])
def test_an_unknown_version_is_refused_before_anything_happens(revision: str, tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/none.db"
    with pytest.raises(InputError, match=r"no such version of the schema.*Write head or one of 0001"):
        asyncio.run(schema.upgrade(url, revision))
    with pytest.raises(InputError):
        schema.sql(url, revision)
    assert not list(tmp_path.iterdir())


def test_the_newest_version_is_read_from_the_names_of_the_files() -> None:
    """`HEAD` comes from there, without Alembic; the chain itself must say the same."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(schema._STEPS))
    chain = ScriptDirectory.from_config(config)
    assert chain.get_heads() == [schema.HEAD]
    assert tuple(reversed([step.revision for step in chain.walk_revisions()])) == schema.REVISIONS
    assert all(re.fullmatch(r"\d{4}", revision) for revision in schema.REVISIONS)


def test_reading_a_version_loads_no_alembic() -> None:
    script = "import sys; from aaiclick.orchestration.store import schema; sys.exit('alembic' in sys.modules)"
    warm.run([sys.executable, "-c", script], env=environment(), check=True, timeout=60)


# ---------------------------------------------------------------- how it is done


async def create_at_once(url: str) -> None:
    async with connecting.connect(url, write=True) as connection:
        assert await connection.run_sync(schema.create_at_once)
        await connection.commit()


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def kill_half_way(url: str) -> int:
    """Upgrade in a process of its own that gets SIGKILL before its fifth table."""
    script = f"""
import os, signal
from alembic.ddl.impl import DefaultImpl
create_table, names = DefaultImpl.create_table, []
def killed(self, table, **options):
    names.append(table.name)
    if len(names) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    create_table(self, table, **options)
DefaultImpl.create_table = killed
{UPGRADE}
"""
    return warm.run([sys.executable, "-c", script, url], env=environment(), timeout=60).returncode


class CutOff(BaseException):
    """Like a kill: nothing that the code might catch."""


@contextmanager
def cut_off_after(nth: int) -> Iterator[None]:
    """Let so many DDL statements through, and then raise."""
    passed = 0

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal passed
        if statement.lstrip().startswith("CREATE"):
            passed += 1
            if passed > nth:
                raise CutOff

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", count)


async def execute_script(dialect: str, url: str, script: str) -> None:
    """As an operator would: the database's own client, not ours."""
    parts = make_url(url)
    if dialect == "sqlite":
        with closing(sqlite3.connect(str(parts.database))) as connection:
            connection.executescript(script)
    elif dialect == "postgres":
        postgres = await asyncpg.connect(without_driver(url))
        await postgres.execute(script)
        await postgres.close()
    else:
        mariadb = await asyncmy.connect(
            host=parts.host,
            port=parts.port,
            user=parts.username,
            password=parts.password or "",
            database=parts.database,
            client_flag=CLIENT.MULTI_STATEMENTS,
            autocommit=True,
        )
        async with mariadb.cursor() as cursor:
            await cursor.execute(script)
            while await cursor.nextset():
                pass
        mariadb.close()
