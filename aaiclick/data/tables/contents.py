"""Digests of what tables contain now, by which a change is noticed without reading any row."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from aaiclick.data.clients.contract import DataClient
from aaiclick.data.sql import quoting


async def contents_of(client: DataClient, tables: Collection[str]) -> dict[str, str]:
    """Return a digest for each of these tables that is an ordinary one: it changes with every insert and deletion.

    It covers the table's definition too, whose comment tells one table of a name from the next. Merges of parts change
    it, although no row changes. Tables of a cluster, and of engines without parts, are left out: this server does not
    know all of what they contain.
    """
    if not tables:
        return {}
    named = f"IN ({', '.join(map(quoting.text, sorted(tables)))})"
    here = "database = currentDatabase()"
    facts = "name, toString(uuid), create_table_query"
    plain = f"SELECT {facts} FROM system.tables WHERE {here} AND name {named}"  # noqa: S608 (quoted)
    parts = (
        "SELECT table, name, hash_of_all_files FROM system.parts"  # noqa: S608 (quoted)
        f" WHERE {here} AND active AND table {named} ORDER BY table, name"
    )
    ordinary = "engine LIKE '%MergeTree' AND engine NOT LIKE 'Replicated%' AND engine NOT LIKE 'Shared%'"
    found = {name: own for name, *own in _rows(await client.rows(f"{plain} AND {ordinary}"))}
    for table, *part in _rows(await client.rows(parts)):
        if table in found:
            found[table] += part
    return {name: hashlib.sha256("\n".join(own).encode()).hexdigest() for name, own in found.items()}


def _rows(found: object) -> Iterator[tuple[str, ...]]:
    columns = getattr(found, "columns", ())
    return zip(*columns, strict=True) if columns else iter(())
