"""Building blocks of migrations: columns, tables and indexes, the same on all databases.

Released migrations call these functions, so what a call makes must never change.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, text
from sqlalchemy.schema import SchemaItem

BUSY = {
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}
HOT = {"fillfactor": 50, **BUSY}


def flag(name: str) -> Column[bool]:
    """Return a boolean column, NOT NULL, with the default false."""
    return Column(name, Boolean(create_constraint=False), nullable=False, server_default=text("false"))


def create_table(
    name: str, *columns: SchemaItem, postgres: dict[str, float] | None = None, with_rowid: bool = True
) -> None:
    """Create a table whose text columns compare byte by byte, on MariaDB too."""
    op.create_table(
        name,
        *columns,
        if_not_exists=must_be_repeatable(),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_nopad_bin",
        mariadb_engine="InnoDB",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_nopad_bin",
        postgresql_with=postgres or {},
        sqlite_with_rowid=with_rowid,
    )


def create_index(name: str, table: str, *columns: str, unique: bool = False) -> None:
    op.create_index(name, table, list(columns), unique=unique, if_not_exists=must_be_repeatable())


def must_be_repeatable() -> bool:
    """Return whether the database is MariaDB, which commits at each DDL statement; the others roll a step back."""
    return op.get_context().dialect.name in ("mysql", "mariadb")
