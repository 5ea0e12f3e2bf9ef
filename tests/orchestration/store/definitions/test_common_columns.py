"""How tables are defined."""

from __future__ import annotations

import subprocess
import sys

from sqlalchemy import create_mock_engine
from sqlalchemy.sql.ddl import ExecutableDDLElement

from aaiclick.orchestration.store.tables import metadata

OTHERS = ("postgresql", "mysql", "mssql", "oracle")


def test_whoever_keeps_the_state_in_sqlite_loads_no_other_database() -> None:
    code = f"""
import sys, aaiclick.orchestration.coordinator.direct
from aaiclick.orchestration.store.dialects import dialect_of
dialect_of("sqlite+aiosqlite:///state.db")
print([name for name in {OTHERS!r} if f"sqlalchemy.dialects.{{name}}" in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def ddl_of(url: str) -> str:
    """What is said to a database of this kind when the tables are made."""
    said: list[str] = []

    def say(statement: ExecutableDDLElement, *_: object, **__: object) -> None:
        said.append(str(statement.compile(dialect=engine.dialect)))

    engine = create_mock_engine(url, say)
    metadata.create_all(engine, checkfirst=False)
    return "\n".join(said)


def test_each_database_hears_what_is_meant_for_it_alone() -> None:
    sqlite, postgres, mariadb = map(ddl_of, ("sqlite://", "postgresql+asyncpg://", "mariadb+asyncmy://"))
    assert "WITHOUT ROWID" in sqlite
    assert "WHERE freed = 1" in sqlite
    assert "fillfactor = 50" in postgres
    assert "WHERE freed" in postgres
    assert "COLLATE utf8mb4_nopad_bin" in mariadb
    assert "WHERE freed" not in mariadb
    assert "InnoDB" not in sqlite + postgres
    assert "ROWID" not in postgres + mariadb
