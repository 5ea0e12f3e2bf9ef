"""A database of its own for each test: `empty()`, or `migrated()` to the newest schema without migrating each time."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import asyncmy
import asyncpg
from sqlalchemy.engine import make_url

Migrate = Callable[[str], Coroutine[Any, Any, None]]
Ask = Callable[[str], Awaitable[list[tuple[Any, ...]]]]
T = TypeVar("T")


class Databases(Protocol):
    """Fresh databases of one dialect, each gone at the end of its `with`."""

    def empty(self) -> AbstractContextManager[str]: ...

    def migrated(self) -> AbstractContextManager[str]: ...


class SqliteDatabases:
    """Files; a migrated one is a copy."""

    def __init__(self, directory: Path, migrate: Migrate) -> None:
        self.directory = directory
        self.migrate = migrate

    @contextmanager
    def empty(self) -> Iterator[str]:
        home = self.directory / unique_name()
        home.mkdir()
        try:
            yield f"sqlite+aiosqlite:///{home}/local.db"
        finally:
            shutil.rmtree(home, ignore_errors=True)

    @contextmanager
    def migrated(self) -> Iterator[str]:
        with self.empty() as url:
            shutil.copyfile(self.template, str(make_url(url).database))
            yield url

    @cached_property
    def template(self) -> Path:
        file = self.directory / "template.db"
        run_apart(self.migrate(f"sqlite+aiosqlite:///{file}"))
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a copy takes the main file alone
        return file


DISCONNECTING = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
"""Ends connections that a test left open."""

FINGERPRINT = """
SELECT (attrelid::regclass, attname, atttypid, atttypmod, attnotnull, pg_get_expr(adbin, adrelid))::text
  FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
  LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND attnum > 0
UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT (relname, reloptions)::text FROM pg_class WHERE reloptions IS NOT NULL
UNION ALL SELECT setconfig::text FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
  WHERE d.datname = current_database()
UNION ALL SELECT query_to_xml(format('SELECT * FROM %I', tablename), true, false, '')::text
  FROM pg_tables WHERE schemaname = 'public'
ORDER BY 1"""
"""Columns, indexes, settings of a database, and the rows that migrating left in it."""


class PostgresDatabases:
    """Databases of one server; a migrated one is cloned from a template, emptied after use and used again."""

    def __init__(self, server_url: str, migrate: Migrate) -> None:
        self.server_url = server_url
        self.migrate = migrate
        self.free: list[str] = []
        """Migrated databases that nobody uses: to empty one is quicker than to make one."""

    @contextmanager
    def empty(self, *, template: str = "template1") -> Iterator[str]:
        name = unique_name()
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        try:
            yield with_database(self.server_url, name)
        finally:
            self.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    @contextmanager
    def migrated(self) -> Iterator[str]:
        name = self.free.pop() if self.free else self.clone()
        url = with_database(self.server_url, name)
        try:
            yield url
        finally:
            if self.after(name, DISCONNECTING, self.emptying) == self.template_fingerprint:
                self.free.append(name)
            else:  # the test changed more than rows
                self.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def clone(self) -> str:
        name = unique_name()
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{self.template}"')
        return name

    @cached_property
    def emptying(self) -> str:
        """Statements that empty the tables of a migrated database, all but those that migrating filled."""
        tables = self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", self.template)
        asked = (f"""SELECT '{table}' WHERE NOT EXISTS (SELECT 1 FROM "{table}")""" for table in tables)
        empty = self.query(" UNION ALL ".join(asked), self.template)
        without_foreign_keys = "SET session_replication_role = replica"
        return "; ".join([without_foreign_keys, *(f'DELETE FROM "{table}"' for table in empty)])

    @cached_property
    def template_fingerprint(self) -> list[Any]:
        return self.after(self.template)

    def after(self, name: str, *statements: str) -> list[Any]:
        """What a database's fingerprint is after the statements, on one connection: every test asks this."""

        async def work() -> list[Any]:
            async with self.connected(name) as connection:
                for statement in statements:
                    await connection.execute(statement)
                return [row[0] for row in await connection.fetch(FINGERPRINT)]

        return run_apart(work())

    @cached_property
    def template(self) -> str:
        name = unique_name("template")
        self.execute(f'CREATE DATABASE "{name}"')
        run_apart(self.migrate(with_database(self.server_url, name)))
        return name

    def close(self) -> None:
        made = [*self.free, self.template] if "template" in self.__dict__ else []
        for name in made:
            self.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    def execute(self, statement: str) -> None:
        async def work() -> None:
            async with self.connected() as connection:
                await connection.execute(statement)

        run_apart(work())

    def query(self, statement: str, database: str) -> list[Any]:
        """The first column of what it gives."""

        async def work() -> list[Any]:
            async with self.connected(database) as connection:
                return [row[0] for row in await connection.fetch(statement)]

        return run_apart(work())

    @asynccontextmanager
    async def connected(self, database: str | None = None) -> AsyncIterator[asyncpg.Connection]:
        url = self.server_url if database is None else with_database(self.server_url, database)
        connection = await asyncpg.connect(without_driver(url))
        try:
            yield connection
        finally:
            await connection.close()


class MariadbDatabases:
    """Databases of one server; there is one migrated database, emptied after each use, as MariaDB clones none."""

    def __init__(self, server_url: str, migrate: Migrate) -> None:
        self.server_url = server_url
        self.migrate = migrate
        self.seeds: list[str] = []
        """Tables that migrating filled, the schema's version apart."""

    @contextmanager
    def empty(self) -> Iterator[str]:
        name = unique_name()
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield with_database(self.server_url, name)
        finally:
            run_apart(self.drop(name))

    async def drop(self, name: str) -> None:
        async with self.connected() as ask:
            await self.cut(ask, name)
            await ask(f"DROP DATABASE {name}")

    @contextmanager
    def migrated(self) -> Iterator[str]:
        name = self.template
        try:
            yield with_database(self.server_url, name)
        finally:
            run_apart(self.bring_back(name))

    async def bring_back(self, name: str) -> None:
        """Make the migrated database what it was; the schema's version stays untouched."""
        async with self.connected() as ask:
            await self.cut(ask, name)
            used = [table for table in await self.non_empty(ask, name) if not table.endswith("alembic_version")]
            await ask("SET foreign_key_checks = 0")
            for table in used:
                await ask(f"DELETE FROM {name}.`{table}`")  # quicker than TRUNCATE where there are few rows
            for table in self.seeds:
                await ask(f"INSERT INTO {name}.`{table}` SELECT * FROM {name}_seed.`{table}`")

    @cached_property
    def template(self) -> str:
        """The migrated database; `_seed` beside it holds the rows that migrating left in it."""
        name = unique_name("template")
        self.execute(f"CREATE DATABASE {name}", f"CREATE DATABASE {name}_seed")
        run_apart(self.migrate(with_database(self.server_url, name)))
        run_apart(self.keep_seeds(name))
        return name

    async def keep_seeds(self, name: str) -> None:
        async with self.connected() as ask:
            filled = [table for table in await self.non_empty(ask, name) if not table.endswith("alembic_version")]
            for table in filled:
                await ask(f"CREATE TABLE {name}_seed.`{table}` AS SELECT * FROM {name}.`{table}`")
        self.seeds = filled

    def close(self) -> None:
        if "template" in self.__dict__:
            self.execute(f"DROP DATABASE {self.template}", f"DROP DATABASE {self.template}_seed")

    def disconnect(self, name: str) -> None:
        """End the connections to a database, as an outage would."""

        async def work() -> None:
            async with self.connected() as ask:
                await self.cut(ask, name)

        run_apart(work())

    async def cut(self, ask: Ask, name: str) -> None:
        """End connections that a test left open: their locks would hold up ours."""
        for row in await ask(f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"):
            with suppress(asyncmy.errors.OperationalError):  # it has just gone by itself
                await ask(f"KILL {row[0]}")

    async def non_empty(self, ask: Ask, name: str) -> list[str]:
        tables = await ask(
            "SELECT table_name FROM information_schema.tables"
            f" WHERE table_schema = '{name}' AND table_type = 'BASE TABLE'"
        )
        asked = " UNION ALL ".join(
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {name}.`{table}`)" for (table,) in tables
        )
        return [row[0] for row in await ask(asked)] if asked else []

    def execute(self, *statements: str) -> None:
        async def work() -> None:
            async with self.connected() as ask:
                for statement in statements:
                    await ask(statement)

        run_apart(work())

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Ask]:
        """One connection, as a function that runs a statement and returns its rows."""
        url = make_url(self.server_url)
        connection = await asyncmy.connect(
            host=url.host, port=url.port or 3306, user=url.username, password=url.password or "", autocommit=True
        )

        async def ask(statement: str) -> list[tuple[Any, ...]]:
            async with connection.cursor() as cursor:
                await cursor.execute(statement)
                return list(await cursor.fetchall())

        try:
            yield ask
        finally:
            connection.close()


def unique_name(prefix: str = "test") -> str:
    return f"{prefix}_{uuid4().hex[:16]}"


def with_database(server_url: str, name: str) -> str:
    return make_url(server_url).set(database=name).render_as_string(hide_password=False)


def without_driver(url: str) -> str:
    return url.replace("+asyncpg", "", 1)


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a thread of its own, out of the way of the test's event loop."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()
