"""Helpers for table definitions: common columns, and options for single databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Column, Connection, Index, Integer, MetaData, String, Table, event, text
from sqlalchemy.schema import SchemaItem

from aaiclick.orchestration.store.definitions.column_types import Id

metadata = MetaData()

BUSY = {
    "autovacuum_vacuum_scale_factor": 0.02,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}
HOT = {"fillfactor": 50, **BUSY}
"""For tables whose rows are updated: free space on the page spares PostgreSQL the update of the indexes."""

_INNODB = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_nopad_bin"}
"""Names compare exactly on all three databases; MariaDB's default collation ignores case, accents, trailing blanks."""

_said: list[tuple[Table | Index, dict[str, dict[str, Any]]]] = []
"""Tables and indexes with their options, by database and option; see `_say`."""


def table(name: str, *items: SchemaItem, postgres: dict[str, float] | None = None, with_rowid: bool = True) -> Table:
    made = Table(name, metadata, *items)
    _said.append((made, {"postgresql": {"with": postgres or {}}, "sqlite": {"with_rowid": with_rowid}}))
    _said.append((made, {"mysql": _INNODB, "mariadb": _INNODB}))
    return made


def few(name: str, flag: str) -> Index:
    """Define an index of the few rows whose flag is set. MariaDB takes all rows: it has no partial indexes."""
    made = Index(name, flag)
    _said.append((made, {"postgresql": {"where": text(flag)}, "sqlite": {"where": text(f"{flag} = 1")}}))
    return made


def known(name: str, column: str, *more: str) -> Index:
    """Define an index of the few rows that have a value there. MariaDB takes all rows: it has no partial indexes."""
    made = Index(name, column, *more)
    have = {"where": text(f"{column} IS NOT NULL")}
    _said.append((made, {"postgresql": have, "sqlite": have}))
    return made


@event.listens_for(metadata, "before_create")
def _say(_: MetaData, connection: Connection, **__: Any) -> None:
    """Set the options of this database when tables are created.

    Given with the definitions, they would make SQLAlchemy load the dialects of all databases in every process.
    """
    name = connection.dialect.name
    for item, options in _said:
        for option, value in options.get(name, {}).items():
            item.dialect_kwargs[f"{name}_{option}"] = value


def count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean(create_constraint=False), nullable=False, server_default=text("false"))


def key(name: str) -> Column[int]:
    return Column(name, Id, primary_key=True, autoincrement=False)


def rule(name: str) -> Column[str]:
    return Column(name, String(20), nullable=False, server_default=text("'all_completed'"))
