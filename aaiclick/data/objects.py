"""An Object: a table in ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Unpack
from uuid import uuid4

from aaiclick.data import sql
from aaiclick.data.clocks import check_alike
from aaiclick.data.compiling import to_sql
from aaiclick.data.exactness import exact_cast
from aaiclick.data.expressions import Column, Expression
from aaiclick.data.frames import Frame
from aaiclick.data.grammar import parse
from aaiclick.data.moving import add_rows
from aaiclick.data.names import scope_of
from aaiclick.data.places import in_order, is_as_inserted, is_below
from aaiclick.data.relations import Project, Table
from aaiclick.data.schema import Field, Schema
from aaiclick.data.types import clock_of_type, has_naive, read_kind
from aaiclick.data.values import conform
from aaiclick.data.views import Window, Windowed
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.context import Context
    from aaiclick.data.tables.sources import FileOptions, PathLike, UrlOptions


class Object(Windowed):
    """A table in ClickHouse, with what can be asked of it and computed from it."""

    __slots__ = ("_schema", "rejected")

    def __init__(self, context: Context, name: str, schema: Schema, keeper: object = None) -> None:
        columns = tuple(_column(field) for field in schema.fields)
        naive = {field.name: field.type for field in schema.fields if has_naive(field.type)}
        table = Table(name, columns, schema.ordered, keeper, naive, schema.replacing)
        super().__init__(context, table, Window(), schema.shape)
        self._schema = schema
        self.rejected: Object | None = None
        """The rows of its file that were left out: row, column, value, reason and cells. Only after `collect`."""

    @property
    def schema(self) -> Schema:
        """Its columns and their types."""
        return self._schema

    @property
    def scope(self) -> Literal["temporary", "job", "global"]:
        """Who has it: its context, whose end is its end, the job, or everybody."""
        return scope_of(self.table)

    @property
    def persistent(self) -> bool:
        """Whether it outlives its context."""
        return self.scope != "temporary"

    @property
    def stale(self) -> bool:
        """Whether it cannot be used any more: its context has ended, or it was temporary and was deleted."""
        return self._context._client is None or bool(getattr(self._table.keeper, "dropped", False))

    async def insert(self, *values: Any, token: str | None = None, nan_to_null: bool | None = None) -> int:
        """Add rows: values, or all rows of Objects, Views and queries with these columns; gives how many.

        What does not fit the type of its column is refused, and so are columns that are not here. A column that is
        missing becomes None, where the type allows it. Where the same `token` was used before, nothing is added.
        NaN of pandas becomes None where the column can hold that; `nan_to_null` says it for all values.
        """
        added = 0
        for number, value in enumerate(values):
            mark = f"{token}.{number}" if token and number else token  # each is a part of its own
            if isinstance(value, Frame):
                added += await self._insert_rows(value, mark)
            else:
                added += await self._insert_values(value, mark, nan_to_null)
        return added

    async def insert_from_file(self, path: PathLike, **given: Unpack[FileOptions]) -> int:
        """Add the rows of a file, read as the types of the columns; gives how many.

        The options are those of `create_object_from_file`, without a name; the rest is as with `insert`.
        """
        return await self._context.insert_from("insert_from_file", self, path, given)

    async def insert_from_url(self, url: str, **given: Unpack[UrlOptions]) -> int:
        """Add the rows that an address gives; the options are those of `create_object_from_url`."""
        return await self._context.insert_from("insert_from_url", self, url, given)

    async def _insert_values(self, value: Any, token: str | None, nan_to_null: bool | None) -> int:
        data = conform(value, self._schema, nan_to_null)
        if not data.num_rows:
            return 0
        added = await self._context.client.insert(self.table, data, token=token)
        await self._context.note("insert", self.table)
        return added

    async def _insert_rows(self, frame: Frame, token: str | None) -> int:
        """Let ClickHouse move them, in their order if they have one; types that differ are cast, checked."""
        client = self._context.client
        query = to_sql(in_order(frame._relation))
        found = await client.rows(f"DESCRIBE TABLE ({query})")
        types = dict(zip(found.columns[0], found.columns[1], strict=True))
        pairs = self._pairs(types)
        listed = ", ".join(_cast(theirs, types[theirs], self._schema[mine].type) for mine, theirs in pairs.items())
        names = ", ".join(map(sql.name, pairs))
        # one piece after the other, so they stay in order
        settings = {"max_insert_threads": 1, "insert_deduplication_token": token or uuid4().hex}
        if is_below(frame._relation) and is_as_inserted(frame._relation):
            settings["max_threads"] = 1

        def statement(table: str) -> str:
            return f"INSERT INTO {sql.name(table)} ({names}) SELECT {listed} FROM ({query})"  # noqa: S608 (quoted, and compiled)

        if token is None:
            added = await add_rows(self._context, self.table, statement, settings, frame.count)
        else:
            added = await frame.count()
            await client.command(statement(self.table), settings)
        taken: dict[str, Expression] = {mine: Column(theirs) for mine, theirs in pairs.items()}
        await self._context.note("insert", self.table, Project(frame._relation, taken), statement(self.table))
        return added

    def _pairs(self, types: Mapping[str, str]) -> dict[str, str]:
        """Which column goes where: by name, or one into one."""
        if len(types) == 1 and len(self._schema) == 1:
            return {self._schema.names[0]: next(iter(types))}
        missing = [name for name in self._schema.names if name not in types and not self._may_be_none(name)]
        unexpected = [name for name in types if name not in self._schema]
        if missing or unexpected:
            rule = f"missing: {', '.join(missing) or 'none'}; unexpected: {', '.join(unexpected) or 'none'}"
            raise InputError(field="insert", value=", ".join(types), rule=rule, hint="Choose or rename columns first.")
        return {name: name for name in self._schema.names if name in types}

    def _may_be_none(self, name: str) -> bool:
        return parse(self._schema[name].type).is_nullable


def _column(field: Field) -> Column:
    with suppress(InputError):  # a type of ClickHouse's that is not known here
        kind = read_kind(field.type)
        return Column(field.name, kind.bare.name == "Bool", kind.clock, kind)
    return Column(field.name)


def _cast(name: str, has: str, wanted: str) -> str:
    quoted = sql.name(name)
    if has == wanted:
        return quoted
    clock = clock_of_type(has)
    check_alike(f"insert, column {shown(name)}", clock, clock_of_type(wanted))
    return exact_cast(quoted, wanted, clock)
