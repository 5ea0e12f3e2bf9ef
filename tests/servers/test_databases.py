"""Fresh databases: each test finds the schema and its rows as migrating left them, and nobody else's."""

import re

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from tests.servers.databases import Databases, MariadbDatabases, PostgresDatabases, SqliteDatabases, run_apart

MIGRATIONS_RUN: list[str] = []


@pytest.fixture
def fresh(request: pytest.FixtureRequest, dialect: str, tmp_path):
    """A source of databases with a schema of our own: the real one is tested elsewhere."""
    MIGRATIONS_RUN.clear()
    if dialect == "sqlite":
        yield SqliteDatabases(tmp_path, migrate)
        return
    kind = PostgresDatabases if dialect == "postgres" else MariadbDatabases
    databases = kind(request.getfixturevalue(f"{dialect}_server"), migrate)
    yield databases
    databases.close()


async def migrate(url: str) -> None:
    MIGRATIONS_RUN.append(url)
    await execute(
        url,
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY)",
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, job_id INTEGER REFERENCES jobs (id))",
        "CREATE TABLE settings (name VARCHAR(20) PRIMARY KEY)",
        "INSERT INTO settings VALUES ('seed')",
        "CREATE TABLE alembic_version (version_num VARCHAR(32))",
        "INSERT INTO alembic_version VALUES ('0001')",
    )


async def execute(url: str, *statements: str) -> None:
    engine = create_async_engine(url)
    async with engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))
    await engine.dispose()


async def rows(url: str, table: str) -> list[tuple]:
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        found = [tuple(row) for row in await connection.execute(text(f"SELECT * FROM {table}"))]
    await engine.dispose()
    return found


async def test_an_empty_database_takes_a_schema_each_time(fresh: Databases) -> None:
    for _ in range(2):
        with fresh.empty() as url:
            await migrate(url)


async def test_a_migrated_database_is_the_same_each_time_and_migrated_once(fresh: Databases) -> None:
    for _ in range(3):
        with fresh.migrated() as url:
            assert await rows(url, "jobs") == []
            assert await rows(url, "settings") == [("seed",)]
            assert await rows(url, "alembic_version") == [("0001",)]
            await execute(
                url,
                "INSERT INTO jobs VALUES (1)",
                "INSERT INTO tasks VALUES (1, 1)",
                "DELETE FROM settings",
            )
    assert len(MIGRATIONS_RUN) == 1


async def test_a_connection_left_open_holds_up_nobody(fresh: Databases) -> None:
    with fresh.migrated() as url:
        engine = create_async_engine(url)
        connection = await engine.connect()
        await connection.execute(text("INSERT INTO jobs VALUES (1)"))
    with fresh.migrated() as url:
        assert await rows(url, "jobs") == []
    await connection.invalidate()
    await engine.dispose()


async def test_every_test_gets_a_url_with_the_driver_we_use(dialect: str, sql_url: str) -> None:
    drivers = {
        "sqlite": r"sqlite\+aiosqlite:////",
        "postgres": r"postgresql\+asyncpg://",
        "mariadb": r"mariadb\+asyncmy://",
    }
    assert re.match(drivers[dialect], sql_url)
    await execute(sql_url, "CREATE TABLE jobs (id INTEGER PRIMARY KEY)")


async def test_work_is_run_apart_from_the_running_loop() -> None:
    async def answer() -> int:
        return 42

    assert run_apart(answer()) == 42
