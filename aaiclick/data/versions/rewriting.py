"""Change an Object with versions: insert rows, upsert them by key, and roll back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.frames import Frame
from aaiclick.data.provenance.column_sources import UNKNOWN, by_name, derived
from aaiclick.data.query.relations import Relation, tables_of
from aaiclick.data.tables.table_names import name_of
from aaiclick.data.typing.schema import Schema
from aaiclick.data.versions.catalog import Version, check_version, locate, versions_of
from aaiclick.data.versions.changes import Changed, Key, Staged, base_of, changed, count, follow, staged
from aaiclick.data.versions.publishing import Change, MadeVersion, Published, publish
from aaiclick.errors import ObjectNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aaiclick.data.context import Context


class Upserted(NamedTuple):
    """How many rows an `upsert` added, and how many it replaced."""

    inserted: int
    updated: int


class Given(NamedTuple):
    """Rows to be inserted, and how."""

    rows: Any
    key: str | Sequence[str] | None = None
    order_by: str | None = None
    token: str | None = None
    keep: int | None = None
    nan_to_null: bool | None = None


async def put_in(context: Context, table: str, given: Given) -> tuple[Published, Upserted]:
    """Insert rows into the latest version of an Object, as a new version; with a key, in place of rows that have it."""
    putting = _Putting(context, table, given)
    operation = "insert" if given.key is None else "upsert"
    found = await publish(context, Change(table, operation, putting.make, given.keep, given.token))
    if not found.is_new:
        return found, Upserted(0, 0)
    await _note(context, operation, found, putting.taken)
    return found, Upserted(putting.changed.added - putting.updated, putting.updated)


class _Putting:
    """Makes the table of one version; `make` may be called again for a newer base, and keeps the staged rows."""

    def __init__(self, context: Context, table: str, given: Given) -> None:
        self._context, self._table, self._given = context, table, given
        self._staged: tuple[Schema, Staged] | None = None
        self.taken: Relation | None = None
        self.changed = Changed(0, 0)
        self.updated = 0

    async def make(self, version: Version | None) -> MadeVersion | None:
        """Make the table of the next version; return None if there are no rows."""
        if version is None:
            raise ObjectNotFound(name=name_of(self._table) or self._table, hint="list_objects() lists the Objects.")
        base = await base_of(self._context.client, version)
        if isinstance(self._given.rows, Frame):
            follow(self._given.rows._relation, version)
        key = None if self._given.key is None else Key(self._given.key, base.schema)
        if self._staged is None or self._staged[0] != base.schema:
            rows = await staged(self._context, base, self._given.rows, self._given.nan_to_null)
            self._staged = (
                base.schema,
                rows if key is None else await key.single(self._context, rows, self._given.order_by),
            )
        rows = self._staged[1]
        self.taken = rows.taken
        gone = None if key is None else key.among(rows.table)
        table, self.changed = await changed(self._context, base, gone, rows)
        self.updated = 0 if key is None else await count(self._context.client, rows.table, key.among(base.table))
        return MadeVersion(table, base.schema) if self.changed.added else None


async def roll_back(context: Context, table: str, number: int) -> Published:
    """Make a new version with the rows of an older one; as with any new version, only the last `keep` are kept."""
    check_version(number)
    client, sources = context.client, dict[str, list[str]]()

    async def make(version: Version | None) -> MadeVersion | None:
        old = await locate(client, table, number)
        if old is None or version is None:
            raise ObjectNotFound(name=name_of(table) or table, hint="list_objects() lists the Objects.")
        if old.table == version.table:
            return None
        chosen = next((each for each in await versions_of(client, table) if each.table == old.table), None)
        if chosen is None:  # a later version has pushed it out meanwhile
            hint = "list_versions(name) tells which there are."
            raise ObjectNotFound(name=f"{name_of(table) or table}, version {number}", hint=hint)
        base = await base_of(client, chosen)
        sources.update({base.table: base.schema.names})
        return MadeVersion((await changed(context, base, None, None))[0], base.schema)

    found = await publish(context, Change(table, "rollback", make))
    if found.is_new:
        await context.note("rollback", found.table, list(sources), "", by_name(sources))
    return found


async def _note(context: Context, operation: str, found: Published, taken: Relation | None) -> None:
    """Log the operation: the rows come from the version before and from the inserted frame."""
    if found.before is None or found.schema is None:
        return
    mine = by_name({found.before.table: found.schema.names})
    tables = [] if taken is None else tables_of(taken)
    columns = mine if taken is None else (*mine, *derived(taken, tables))
    sources = [found.before.table, *(each.name for each in tables)]
    await context.note(operation, found.table, sources, "", columns if len(columns) < 1_000 else UNKNOWN)
