"""Object: a table in ClickHouse, into which rows are inserted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack
from uuid import uuid4

from aaiclick.data.frames import Frame
from aaiclick.data.query.row_order import is_as_inserted, is_below
from aaiclick.data.tables.appending import add_rows
from aaiclick.data.tables.inserting import insertion
from aaiclick.data.tables.stored_tables import table_of
from aaiclick.data.tables.table_names import scope_of, version_in, without_version
from aaiclick.data.typing.schema import Schema
from aaiclick.data.typing.tabulation import conform
from aaiclick.data.versions.catalog import schema_of, versions_of
from aaiclick.data.versions.publishing import GONE
from aaiclick.data.versions.rewriting import Given, Upserted, put_in
from aaiclick.data.views import Window, Windowed
from aaiclick.errors import DataRefused, InputError, ObjectNotFound

if TYPE_CHECKING:
    from aaiclick.data.context import Context
    from aaiclick.data.files.sources import FileOptions, PathLike, UrlOptions


class Object(Windowed):
    """A table in ClickHouse: a frame whose rows are stored, and into which rows can be inserted."""

    __slots__ = ("_is_pinned", "_schema", "rejected")

    def __init__(
        self, context: Context, name: str, schema: Schema, keeper: object = None, *, is_pinned: bool = False
    ) -> None:
        super().__init__(context, table_of(name, schema, keeper), Window(), schema.shape)
        self._schema, self._is_pinned = schema, is_pinned
        self.rejected: Object | None = None
        """The rows of its file that were left out: row, column, value, reason and cells. Set only after `collect`."""

    @property
    def schema(self) -> Schema:
        """Return the columns with their types."""
        return self._schema

    @property
    def scope(self) -> Literal["temporary", "job", "global"]:
        """Return who keeps the Object: its context (temporary), the job, or everybody (global)."""
        return scope_of(self.table)

    @property
    def persistent(self) -> bool:
        """Return whether the Object outlives its context."""
        return self.scope != "temporary"

    @property
    def stale(self) -> bool:
        """Return whether the Object is unusable: its context has ended, or it was temporary and was deleted."""
        return self._context._client is None or bool(getattr(self._table.keeper, "dropped", False))

    async def insert(self, *values: Any, token: str | None = None, nan_to_null: bool | None = None) -> int:
        """Insert values, or all rows of Objects, Views and queries with these columns; return how many.

        Values that do not fit the type of their column are refused, and so are unknown columns. A missing column
        becomes None, where its type allows it. A repeated `token` inserts nothing. NaN of pandas becomes None where the
        column can hold it; `nan_to_null` sets one rule for all values.
        """
        self._check_open()
        added = 0
        for number, value in enumerate(values):
            mark = f"{token}.{number}" if token and number else token  # each value is an insert with a token of its own
            added += await self._insert(value, mark, nan_to_null)
        return added

    async def insert_from_file(self, path: PathLike, **given: Unpack[FileOptions]) -> int:
        """Insert the rows of a file, read as the types of the columns; return how many.

        The options are those of `create_object_from_file`, without a name; otherwise it works as `insert`.
        """
        self._check_open()
        return await self._context.insert_from("insert_from_file", self, path, given)

    async def insert_from_url(self, url: str, **given: Unpack[UrlOptions]) -> int:
        """Insert the rows at an address; the options are those of `create_object_from_url`, without a name."""
        self._check_open()
        return await self._context.insert_from("insert_from_url", self, url, given)

    async def upsert(
        self,
        rows: Any,
        *,
        key: str | Sequence[str],
        order_by: str | None = None,
        token: str | None = None,
        keep: int | None = None,
        nan_to_null: bool | None = None,
    ) -> Upserted:
        """Insert rows (values, an Object, a View or a query) in place of those with the same key; other keys are added.

        This makes a new version of a named Object in one step, and this Object becomes that version. Several rows of
        one key are refused, unless `order_by` tells which is the last. A repeated `token` changes nothing.
        """
        if not self.persistent:
            rule = "it has no name, and only Objects with a name have versions"
            raise InputError(field="upsert", value=self.table, rule=rule, hint="Give it a name with materialize(name).")
        return await self._put_in(Given(rows, key, order_by, token, keep, nan_to_null))

    def _check_open(self) -> None:
        """Raise InputError if the Object is a result that is remembered for other runs."""
        if self.table in self._context.fixed:
            rule = "it is a remembered result, which others are given too"
            raise InputError(field="insert", value=self.table, rule=rule, hint="Insert into a copy: await obj.copy()")

    async def _insert(self, value: Any, token: str | None, nan_to_null: bool | None) -> int:
        if version_in(self.table) is None:
            try:
                if isinstance(value, Frame):
                    return await self._insert_rows(value, token)
                return await self._insert_values(value, token, nan_to_null)
            except (DataRefused, ObjectNotFound) as error:
                if not self.persistent or not await self._has_versions(error):
                    raise
        return (await self._put_in(Given(value, token=token, nan_to_null=nan_to_null))).inserted

    async def _has_versions(self, error: DataRefused | ObjectNotFound) -> bool:
        """Return whether the error arose because the Object got versions, which renamed its table."""
        if isinstance(error, DataRefused) and error.facts["code"] != GONE:
            return False
        versions = await versions_of(self._context.client, self.table)
        return bool(versions) and not versions[-1].is_plain

    async def _put_in(self, given: Given) -> Upserted:
        """Make a new version, which this Object becomes; raise InputError if it was opened as a fixed version."""
        if self._is_pinned:
            rule = "it was opened as a version, and versions do not change"
            hint = "Open the Object without a version, or roll back to this version first."
            raise InputError(field="insert", value=self.table, rule=rule, hint=hint)
        found, done = await put_in(self._context, without_version(self.table), given)
        schema = found.schema or await schema_of(self._context.client, found.table)
        self.__init__(self._context, found.table, schema)  # type: ignore[misc]
        return done

    async def _insert_values(self, value: Any, token: str | None, nan_to_null: bool | None) -> int:
        data = conform(value, self._schema, nan_to_null)
        if not data.num_rows:
            return 0
        added = await self._context.client.insert(self.table, data, token=token)
        await self._context.note("insert", self.table)
        return added

    async def _insert_rows(self, frame: Frame, token: str | None) -> int:
        """Let ClickHouse copy the rows, in their order if they have one; types that differ are cast with checks."""
        client = self._context.client
        found = await insertion(client, frame._relation, self._schema)
        # one thread inserts block after block, so that rows stay in order
        settings = {"max_insert_threads": 1, "insert_deduplication_token": token or uuid4().hex}
        if is_below(frame._relation) and is_as_inserted(frame._relation):
            settings["max_threads"] = 1
        if token is None:
            added = await add_rows(self._context, self.table, found.statement, settings, frame.count)
        else:
            added = await frame.count()
            await client.command(found.statement(self.table), settings)
        await self._context.note("insert", self.table, found.taken, found.statement(self.table))
        return added
