"""A database of its own for each test: `empty()`, or `migrated()` to the newest schema without migrating each time."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import asyncmy
import asyncpg
from sqlalchemy.engine import make_url

Migrate = Callable[[str], Coroutine[Any, Any, None]]
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
            # connections that the test left open
            self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            self.execute(self.emptying, database=name)
            if self.fingerprint(name) == self.template_fingerprint:
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
        empty = [table for table in tables if not self.query(f'SELECT 1 FROM "{table}" LIMIT 1', self.template)]
        without_foreign_keys = "SET session_replication_role = replica"
        return "; ".join([without_foreign_keys, *(f'DELETE FROM "{table}"' for table in empty)])

    @cached_property
    def template_fingerprint(self) -> list[Any]:
        return self.fingerprint(self.template)

    def fingerprint(self, name: str) -> list[Any]:
        """Columns, indexes, settings of the database, and the rows that migrating left in it."""
        return self.query(
            f"""SELECT (table_name, column_name, data_type, is_nullable, column_default)::text
            FROM information_schema.columns WHERE table_schema = 'public'
            UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
            UNION ALL SELECT (relname, reloptions)::text FROM pg_class WHERE reloptions IS NOT NULL
            UNION ALL SELECT setconfig::text FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
              WHERE d.datname = '{name}'
            UNION ALL SELECT query_to_xml(format('SELECT * FROM %I', tablename), true, false, '')::text
              FROM pg_tables WHERE schemaname = 'public'
            ORDER BY 1""",
            name,
        )

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

    def execute(self, statement: str, database: str | None = None) -> None:
        run_apart(self._ask("execute", statement, database))

    def query(self, statement: str, database: str) -> list[Any]:
        """The first column of what it gives."""
        return [row[0] for row in run_apart(self._ask("fetch", statement, database))]

    async def _ask(self, verb: str, statement: str, database: str | None) -> Any:
        url = self.server_url if database is None else with_database(self.server_url, database)
        connection = await asyncpg.connect(without_driver(url))
        try:
            return await getattr(connection, verb)(statement)
        finally:
            await connection.close()


class MariadbDatabases:
    """Databases of one server; there is one migrated database, emptied after each use, as MariaDB clones none."""

    def __init__(self, server_url: str, migrate: Migrate) -> None:
        self.server_url = server_url
        self.migrate = migrate

    @contextmanager
    def empty(self) -> Iterator[str]:
        name = unique_name()
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield with_database(self.server_url, name)
        finally:
            self.disconnect(name)
            self.execute(f"DROP DATABASE {name}")

    @contextmanager
    def migrated(self) -> Iterator[str]:
        name = self.template
        try:
            yield with_database(self.server_url, name)
        finally:
            self.disconnect(name)
            self.execute(*self.emptying(name))

    @cached_property
    def template(self) -> str:
        """The migrated database; `_seed` beside it holds the rows that migrating left in it."""
        name = unique_name("template")
        self.execute(f"CREATE DATABASE {name}", f"CREATE DATABASE {name}_seed")
        run_apart(self.migrate(with_database(self.server_url, name)))
        for table in self.non_empty(name):
            self.execute(f"CREATE TABLE {name}_seed.`{table}` AS SELECT * FROM {name}.`{table}`")
        return name

    def close(self) -> None:
        if "template" in self.__dict__:
            self.execute(f"DROP DATABASE {self.template}", f"DROP DATABASE {self.template}_seed")

    def disconnect(self, name: str) -> None:
        """End connections that a test left open: their locks would hold up ours."""
        for row in self.execute(f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"):
            with suppress(asyncmy.errors.OperationalError):  # it has just gone by itself
                self.execute(f"KILL {row[0]}")

    def emptying(self, name: str) -> list[str]:
        """Statements that bring the migrated database back to what it was; the schema's version stays untouched."""
        seeds = self.tables(f"{name}_seed")
        used = [table for table in self.non_empty(name) if not table.endswith("alembic_version")]
        refilled = [table for table in seeds if not table.endswith("alembic_version")]
        return [
            "SET foreign_key_checks = 0",
            *(f"DELETE FROM {name}.`{table}`" for table in used),  # quicker than TRUNCATE where there are few rows
            *(f"INSERT INTO {name}.`{table}` SELECT * FROM {name}_seed.`{table}`" for table in refilled),
        ]

    def non_empty(self, name: str) -> list[str]:
        asked = " UNION ALL ".join(
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {name}.`{table}`)" for table in self.tables(name)
        )
        return [row[0] for row in self.execute(asked)] if asked else []

    def tables(self, name: str) -> list[str]:
        rows = self.execute(
            "SELECT table_name FROM information_schema.tables"
            f" WHERE table_schema = '{name}' AND table_type = 'BASE TABLE'"
        )
        return [row[0] for row in rows]

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run the statements on one connection and return the rows of the last."""

        async def work() -> list[tuple[Any, ...]]:
            url = make_url(self.server_url)
            connection = await asyncmy.connect(
                host=url.host, port=url.port or 3306, user=url.username, password=url.password or "", autocommit=True
            )
            try:
                async with connection.cursor() as cursor:
                    for statement in statements:
                        await cursor.execute(statement)
                    return list(await cursor.fetchall())
            finally:
                connection.close()

        return run_apart(work())


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
