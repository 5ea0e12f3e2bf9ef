"""Make the table of a version from the one before: parts are shared, not copied; then rows are deleted and added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.clients.contract import Settings
from aaiclick.data.display import glimpse
from aaiclick.data.frames import Frame
from aaiclick.data.query.relations import Relation, tables_of
from aaiclick.data.query.row_order import is_as_inserted, is_below
from aaiclick.data.sql import quoting
from aaiclick.data.tables.inserting import insertion
from aaiclick.data.tables.lifetimes import Keeper, make_anew, new_mark
from aaiclick.data.tables.stored_tables import AS_BELOW
from aaiclick.data.tables.table_names import version_table, without_version
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.schema import ORDER, Schema
from aaiclick.data.typing.tabulation import conform
from aaiclick.data.versions.catalog import Version, schema_of
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.clients.contract import DataClient
    from aaiclick.data.context import Context

PIECES_MAX = 20
"""A copy with more small parts is merged first: deleting rows looks at each part."""

ONE_BY_ONE = {"max_insert_threads": 1}

NO_KEYS = ("Float32", "Float64", "BFloat16", "Array", "Map", "Tuple", "Nested", "JSON", "Dynamic", "Variant", "Nothing")
"""Types whose values are not reliably distinguished, or can be equal in several ways."""


class Base(NamedTuple):
    """The version that a change starts from, with its columns."""

    version: Version
    schema: Schema

    @property
    def table(self) -> str:
        return self.version.table


class Staged(NamedTuple):
    """Rows to be added, in a temporary table."""

    keeper: Keeper
    schema: Schema
    taken: Relation | None = None
    """The query's relation, from which the sources of each column are traced; None if the rows are values."""

    @property
    def table(self) -> str:
        return self.keeper.table


class Changed(NamedTuple):
    """How many rows were added and deleted."""

    added: int
    removed: int


async def base_of(client: DataClient, version: Version) -> Base:
    """Return a version with its columns."""
    return Base(version, await schema_of(client, version.table))


def follow(relation: Relation, version: Version) -> bool:
    """Point a relation to the new name of an Object's table that has just got its first version; return whether it did.

    The tables in the relation are changed in place.
    """
    plain = without_version(version.table)
    found = [] if version.is_plain else [table for table in tables_of(relation) if table.name == plain]
    for table in found:
        object.__setattr__(table, "name", version_table(plain, 1))  # the same rows, under another name
    return bool(found)


async def staged(context: Context, base: Base, rows: Any, nan_to_null: bool | None = None) -> Staged:
    """Store rows, values or a frame, in a temporary table with a version's columns; refuse those that do not fit."""
    client, schema = context.client, base.schema
    relation = rows._relation if isinstance(rows, Frame) else None
    if relation is not None:
        return await staged_query(context, base, relation)
    keeper, data = await context._lifetime.new_table(), conform(rows, schema, nan_to_null)
    await _make(client, keeper.table, base.table)
    if data.num_rows:
        await client.insert(keeper.table, data)
    return Staged(keeper, schema)


async def staged_query(context: Context, base: Base, relation: Relation) -> Staged:
    """Store the rows of a relation in a temporary table with the columns of a version."""
    client, schema = context.client, base.schema
    hint = "Choose or rename columns first; full_refresh=True gives it other columns."
    found, keeper = await insertion(client, relation, schema, hint), await context._lifetime.new_table()
    settings = AS_BELOW if is_below(relation) and is_as_inserted(relation) else ONE_BY_ONE
    await _make(client, keeper.table, base.table, found.statement(keeper.table), settings)
    return Staged(keeper, schema, found.taken)


async def _make(
    client: DataClient, table: str, like: str, insert: str | None = None, settings: Settings | None = None
) -> None:
    """Create a table with the columns of another, and run the statement that fills it."""
    mark = new_mark()

    async def make() -> None:
        await client.tables.make_like(client, like, table, mark)
        if insert is not None:
            await client.command(insert, settings)

    await make_anew(client, table, mark, make)


async def changed(context: Context, base: Base, gone: str | None, rows: Staged | None) -> tuple[Keeper, Changed]:
    """Create a copy of a version's table, without the rows for which `gone` is true, and with the staged rows."""
    client, keeper, mark = context.client, await context._lifetime.new_table(), new_mark()
    table, removed = quoting.name(keeper.table), 0
    if gone is not None:
        removed = await count(client, base.table, gone)
    added = 0 if rows is None else await count(client, rows.table)

    async def make() -> None:
        await client.tables.copy(client, base.table, keeper.table, mark)
        if await _has_many_pieces(client, keeper.table):
            await client.command(f"OPTIMIZE TABLE {table}")
        if removed:
            await client.command(f"DELETE FROM {table} WHERE {gone}")  # noqa: S608 (quoted)
        if added and rows is not None:
            await client.command(f"ALTER TABLE {table} ATTACH PARTITION ALL FROM {quoting.name(rows.table)}")

    await make_anew(client, keeper.table, mark, make)
    return keeper, Changed(added, removed)


async def count(client: DataClient, table: str, where: str = "1") -> int:
    """Return the number of rows of a table for which a condition is true."""
    found = await client.rows(f"SELECT count() FROM {quoting.name(table)} WHERE {where}")  # noqa: S608 (quoted)
    return int(found.columns[0][0])


async def _has_many_pieces(client: DataClient, table: str) -> bool:
    found = await client.rows(
        "SELECT count() FROM system.parts WHERE database = currentDatabase() AND active"  # noqa: S608 (quoted)
        f" AND table = {quoting.text(table)} AND bytes_on_disk < 10000000"
    )
    return int(found.columns[0][0]) > PIECES_MAX


# ---------------------------------------------------------------- keys


class Key:
    """The columns that identify a row, checked against a schema."""

    def __init__(self, given: str | Sequence[str], schema: Schema) -> None:
        names = [given] if isinstance(given, str) else list(given)
        for name in names:
            if name not in schema:
                rule = f"there is no such column; the columns are: {shown(', '.join(schema.names))}"
                raise InputError(field="key", value=shown(repr(name)), rule=rule, hint="")
            kind = parse(schema[name].type).bare.name
            if kind in NO_KEYS:
                rule = f"its type is {kind}, whose values cannot be keys"
                raise InputError(
                    field="key", value=shown(repr(name)), rule=rule, hint="Use texts or whole numbers, for example."
                )
        if not names or len(set(names)) < len(names):
            rule, hint = "it must be a column, or several, each once", 'Write key="id" or key=["a", "b"].'
            raise InputError(field="key", value=shown(repr(given)), rule=rule, hint=hint)
        self.names = names
        self.listed = ", ".join(map(quoting.name, names))

    def among(self, table: str) -> str:
        """Return the condition that a row has the same key as some row of a table."""
        return f"({self.listed}) IN (SELECT {self.listed} FROM {quoting.name(table)})"  # noqa: S608 (quoted)

    async def single(self, context: Context, rows: Staged, order: str | None) -> Staged:
        """Return the rows with one for each key, the last in `order`.

        Raise InputError if a key is NULL, or if several rows have one key and no order tells which is the last.
        """
        client, table = context.client, quoting.name(rows.table)
        nulls = " OR ".join(f"isNull({quoting.name(name)})" for name in self.names)
        found = await client.rows(
            f"SELECT countIf({nulls}), count() - uniqExact({self.listed}) FROM {table}"  # noqa: S608 (quoted)
        )
        without, twice = (int(column[0]) for column in found.columns)
        if without:
            raise InputError(
                field="key", value=f"{without} rows", rule="the key of some rows is NULL", hint="Leave them out."
            )
        if not twice:
            return rows
        if order is None:
            hint = "Give order_by='column' to choose the last row, or deduplicate the rows."
            await self._refuse(client, f"SELECT {self.listed} FROM {table}", hint)  # noqa: S608 (quoted)
        await self._refuse_ties(client, table, quoting.name(str(order)))
        return await self._last(context, rows, str(order))

    async def _refuse_ties(self, client: DataClient, table: str, order: str) -> None:
        """Raise InputError for rows of one key of which none is the last."""
        windows = (
            f"SELECT {self.listed}, {order} AS o, max({order}) OVER (PARTITION BY {self.listed}) AS top,"  # noqa: S608 (quoted)
            f" count() OVER (PARTITION BY {self.listed}) AS n FROM {table}"
        )
        # NaN, which is not equal to itself, has no place in an order
        doubtful = f"SELECT {self.listed} FROM ({windows}) WHERE n > 1 AND (ifNull(o = top, 1) OR ifNull(o != o, 1))"  # noqa: S608 (quoted)
        await self._refuse(client, doubtful, "Choose another order_by, or deduplicate the rows.")

    async def _refuse(self, client: DataClient, rows: str, hint: str) -> None:
        """Raise InputError if a key occurs more than once among the rows."""
        several = f"SELECT {self.listed} FROM ({rows}) GROUP BY {self.listed} HAVING count() > 1"  # noqa: S608 (quoted)
        found = await client.rows(f"{several} ORDER BY {self.listed} LIMIT 1")
        if len(found.columns[0]):
            first = ", ".join(glimpse(column[0]) for column in found.columns)
            rule = f"several rows have the key {first}, and none of them is the last"
            raise InputError(field="rows", value=f"key {shown(', '.join(self.names))}", rule=rule, hint=hint)

    async def _last(self, context: Context, rows: Staged, order: str) -> Staged:
        keeper, table = await context._lifetime.new_table(), quoting.name(rows.table)
        names = [*([ORDER] if rows.schema.ordered else ()), *rows.schema.names]
        listed = ", ".join(map(quoting.name, names))
        last = f"SELECT {listed} FROM {table} ORDER BY {quoting.name(order)} DESC LIMIT 1 BY {self.listed}"  # noqa: S608 (quoted)
        insert = f"INSERT INTO {quoting.name(keeper.table)} ({listed}) {last}"
        await _make(context.client, keeper.table, rows.table, insert, ONE_BY_ONE)
        return rows._replace(keeper=keeper)
