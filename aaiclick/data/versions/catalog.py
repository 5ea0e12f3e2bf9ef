"""The versions of an Object, as read from the names and comments of tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.tables import ALONE
from aaiclick.data.sql import quoting
from aaiclick.data.tables.stored_tables import read_schemas
from aaiclick.data.tables.table_names import name_of, scope_of, version_in, without_version
from aaiclick.data.typing.schema import Schema
from aaiclick.errors import InputError, ObjectNotFound
from aaiclick.urls import shown

KEPT = 5
"""How many versions are kept by default."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a named Object."""

    number: int
    made_at: datetime | None
    """When it was made; None for the table of an Object that had no versions."""
    operation: str
    """The operation that made it: full refresh, incremental, partition, upsert, insert, rollback or create."""
    rows: int | None
    bytes: int | None
    """The size of its files on disk; files that it shares with other versions count for each of them."""
    table: str
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_plain(self) -> bool:
        """Return whether it is the table of an Object without versions, into which rows are inserted directly."""
        return version_in(self.table) is None

    @property
    def mark(self) -> str:
        """Return the mark that distinguishes it from any other table of the same name."""
        return str(self.facts.get("made", ""))

    @property
    def before(self) -> list[str]:
        """Return the marks of the versions that it was made from, the nearest last."""
        return list(self.facts.get("before", ()))

    @property
    def tokens(self) -> list[str]:
        """Return the tokens that were used for it and for the versions before it."""
        return list(self.facts.get("tokens", ()))

    @property
    def keep(self) -> int:
        """Return how many versions of its Object are kept."""
        return int(self.facts.get("keep", KEPT))


async def versions_of(client: DataClient, table: str) -> list[Version]:
    """Return the versions of an Object, the oldest first; `table` is its table's name without a version."""
    which = f"(name = {quoting.text(table)} OR startsWith(name, {quoting.text(f'{table}@')}))"
    found = await _all_versions(client, ALONE.sizes, which)  # each machine of a cluster has all tables
    # ClickHouse lists the names first, and leaves out a table that is renamed meanwhile, as a first version is
    return _counted(found or await _all_versions(client, ALONE.sizes, which))


async def latest_versions(client: DataClient, prefix: str) -> dict[str, Version]:
    """Return the latest version of each Object whose table begins with `prefix`, by the table's unversioned name."""
    found: dict[str, list[Version]] = {}
    for each in await _all_versions(client, client.tables.sizes, f"startsWith(name, {quoting.text(prefix)})"):
        found.setdefault(without_version(each.table), []).append(each)
    return {table: _counted(versions)[-1] for table, versions in found.items()}


async def _all_versions(client: DataClient, tables: str, which: str) -> list[Version]:
    rows = await client.rows(f"SELECT name, comment, total_rows, total_bytes FROM {tables} AND {which}")  # noqa: S608 (quoted)
    found = zip(*rows.columns, strict=True)
    return [_version(*row) for row in found if "@" not in row[0] or version_in(row[0]) is not None]


def _counted(found: list[Version]) -> list[Version]:
    """Return the versions by number; beside numbered ones, a table without a number is about to be withdrawn."""
    numbered = [each for each in found if not each.is_plain]
    return sorted(numbered or found, key=lambda each: each.number)


def _version(table: str, comment: str, rows: int | None, size: int | None) -> Version:
    facts = facts_in(comment)
    at = facts.get("at")
    made_at = datetime.fromisoformat(at) if isinstance(at, str) else None
    number = version_in(table) or 1
    counted = rows if number == 1 else facts.get("rows", rows)  # rows may have been inserted into the first one since
    return Version(number, made_at, str(facts.get("operation", "create")), counted, size, table, facts)


def facts_in(comment: str) -> dict[str, Any]:
    """Return the facts in the comment of a table; none if the comment is not a JSON object."""
    try:
        found = json.loads(comment or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def now() -> str:
    """Return the current time, in the form that is written into comments."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------- find


class Located(NamedTuple):
    """An existing table, and its schema."""

    table: str
    schema: Schema


LOOKS_MAX = 20
"""How often `locate` looks again when a version is dropped before its columns are read."""


async def locate(client: DataClient, table: str, number: int | None = None) -> Located | None:
    """Return the table of a version of an Object, by default the latest; None if there is no such Object.

    Raise ObjectNotFound if the Object has other versions, but not this one.
    """
    for _ in range(LOOKS_MAX):
        versions = await versions_of(client, table)
        chosen = [each for each in versions if number in (None, each.number)]
        if not chosen:
            if number is not None and versions:
                raise _no_version(table, number, versions)
            return None
        if (found := (await read_schemas(client, [chosen[-1].table])).get(chosen[-1].table)) is not None:
            return Located(chosen[-1].table, found)
    return None


def _no_version(table: str, number: int, versions: Sequence[Version]) -> ObjectNotFound:
    hint = f"Its versions are {', '.join(str(each.number) for each in versions)}."
    return ObjectNotFound(name=f"{name_of(table) or table}, version {number}", hint=hint)


async def schema_of(client: DataClient, table: str) -> Schema:
    """Return the columns of a version; raise ObjectNotFound if it was dropped meanwhile."""
    found = (await read_schemas(client, [table])).get(table)
    if found is None:
        raise ObjectNotFound(name=table, hint="Newer versions replaced it: open the Object again.")
    return found


async def locate_all(client: DataClient, tables: Sequence[str]) -> dict[str, Located]:
    """Return the tables that exist; for an Object's table that was renamed when it got versions, the latest version."""
    schemas = await read_schemas(client, tables)
    found = {table: Located(table, schema) for table, schema in schemas.items()}
    for table in tables:
        if table not in found and scope_of(table) != "temporary" and table == without_version(table):
            latest = await locate(client, table)
            found |= {} if latest is None else {table: latest}
    return found


def check_version(number: object) -> int:
    """Return the number of a version; raise InputError unless it is a whole number from 1 on."""
    if type(number) is not int or number < 1:
        rule = "versions are counted from 1"
        raise InputError(field="version", value=shown(repr(number)), rule=rule, hint="list_versions(name) tells them.")
    return number
