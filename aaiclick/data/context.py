"""`data_context` and its Context, in which Objects are made and used; temporary Objects are dropped when it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack

from aaiclick.backend import get_ch_url
from aaiclick.config import settings
from aaiclick.data import deleting
from aaiclick.data.clients.contract import DataClient, Settings
from aaiclick.data.clients.opening import close_client, open_client
from aaiclick.data.clients.tables import NewTable
from aaiclick.data.files import sources
from aaiclick.data.files.sources import FileOptions, PathLike, UrlOptions, reading_of
from aaiclick.data.frames import Frame
from aaiclick.data.groups import Groups
from aaiclick.data.objects import Object
from aaiclick.data.provenance.operation_log import Oplog
from aaiclick.data.query.record_paths import with_paths
from aaiclick.data.query.relations import Relation, own_columns
from aaiclick.data.tables.carried_schemas import FIXED
from aaiclick.data.tables.creation import exposed, new_table
from aaiclick.data.tables.lifetimes import Keeper, Lifetime, directory_of, drop, make_anew, new_mark, swept
from aaiclick.data.tables.refresh import Refresh
from aaiclick.data.tables.storage import PLAINLY, Storage, read_storage
from aaiclick.data.tables.stored_tables import form_of, read_schemas
from aaiclick.data.tables.table_names import Scope, name_of, persistent_table, scope_of
from aaiclick.data.tables.temporary import TemporaryNames
from aaiclick.data.typing.schema import ORDER, Field, Schema, Shape
from aaiclick.data.typing.tabulation import tabulate
from aaiclick.data.versions.catalog import Located, check_version, locate, locate_all, schema_of
from aaiclick.data.versions.publishing import TAKEN, repeated, withdraw_plain
from aaiclick.data.versions.refreshing import refresh
from aaiclick.data.views import View, schema_in, table_in, window_in
from aaiclick.errors import DataRefused, InputError, NoContext, ObjectNotFound, StaleObject
from aaiclick.telemetry.masks import is_mentioned
from aaiclick.urls import shown

Provider = Callable[[], Awaitable["Context"]]

_current: ContextVar[Context | None] = ContextVar("data_context", default=None)
_provider: ContextVar[Provider | None] = ContextVar("data_context_provider", default=None)


class Keeping(TypedDict, total=False):
    """Options for the name of a new Object and for the storage of its table."""

    name: str | None
    scope: Scope
    order: bool
    engine: str
    order_by: str | Sequence[str]
    partition_by: str | Sequence[str]


class Context:
    """A connection to ClickHouse in which Objects are made. Their temporary tables are dropped when it ends."""

    def __init__(
        self,
        client: DataClient,
        lifetime: Lifetime,
        *,
        job_id: int | None = None,
        reads_files: bool = True,
        oplog: Oplog | None = None,
        installation: str = "",
    ) -> None:
        self._client: DataClient | None = client
        self.reads_files = reads_files
        """Whether the engine can read the files of this machine."""
        self._lifetime = lifetime
        self._oplog = oplog
        self.job_id = job_id
        facts = {"job_id": job_id, "installation": installation}
        self.facts = {name: fact for name, fact in facts.items() if fact}
        """Written into the comment of each table that the context makes."""
        self.referred: set[object] = set()
        """Keepers of tables that written references name, as in a task's arguments; held until the context ends."""
        self.fixed: set[str] = set()
        """Tables that references say do not change any more: nothing is inserted into them."""
        self.expected: list[tuple[str, str]] = []
        """Unmet expectations: the outcome (expect_failed or expect_warned), and what was found."""
        self._names = TemporaryNames()

    @property
    def client(self) -> DataClient:
        """Return the client; raise StaleObject once the context has ended."""
        if self._client is None:
            raise StaleObject(what="This Object")
        return self._client

    async def end(self) -> None:
        """Write the log of operations, and drop the temporary tables. Objects of this context are stale afterwards."""
        if self._client is not None:
            await self.flush_oplog()
            self._client = None
            await self._lifetime.end()
            self.referred.clear()
            self._names.clear()

    async def note(
        self, operation: str, result: str, sources: Sequence[str] | Relation = (), query: str = "", columns: Any = None
    ) -> None:
        """Add an operation to the log, if the context keeps one."""
        if self._oplog is not None:
            await self._oplog.note(operation, result, sources, query, columns)

    async def flush_oplog(self) -> None:
        """Write the pending operations to the log's table, if the context keeps a log."""
        if self._oplog is not None:
            await self._oplog.flush()

    # ------------------------------------------------------------ make

    async def create_object(
        self,
        schema: Schema | Mapping[str, object],
        *,
        name: str | None = None,
        scope: Scope = "global",
        order: bool = False,
        engine: str = "MergeTree",
        order_by: str | Sequence[str] = (),
        partition_by: str | Sequence[str] = (),
    ) -> Object:
        """Create an empty Object with these columns. With a name it is kept: for everybody, or for the job.

        `engine`, `order_by` and `partition_by` set how ClickHouse stores the table.
        """
        given = schema if isinstance(schema, Schema) else Schema.from_fields(schema, ordered=order)
        wanted = Schema(given.fields, given.shape, order or given.ordered)
        storage = read_storage(wanted, engine, order_by, partition_by)
        wanted = replace(wanted, replacing=storage.replaces)
        table, keeper = await self._table(name, scope)
        mark = new_mark()
        new = self._new(table, wanted, mark, storage=storage)
        await make_anew(self.client, table, mark, lambda: self.client.tables.make(self.client, new))
        await _check_alone(self.client, table, mark)
        await self.note("create", table)
        return Object(self, table, wanted, keeper)

    async def create_object_from_value(
        self,
        value: Any,
        *,
        fields: Mapping[str, object] | None = None,
        nan_to_null: bool | None = None,
        **kept: Unpack[Keeping],
    ) -> Object:
        """Create an Object from a scalar, a list, a dict, records, a frame of Arrow, pandas or polars, or a query."""
        if isinstance(value, Frame):
            return await value.materialize(kept.get("name"), scope=kept.get("scope", "global"))
        schema, data = tabulate(value, fields, nan_to_null)
        made = await self.create_object(schema, **kept)
        try:
            if data.num_rows:
                await self.client.insert(made.table, data)
        except BaseException:  # a partly filled Object could be taken for a complete one
            await drop(self.client, made.table)
            raise
        return made

    async def materialize(
        self,
        relation: Relation,
        shape: Shape,
        name: str | None,
        scope: Scope,
        asked: Refresh | None = None,
        settings: Settings | None = None,
    ) -> Object:
        """Store the rows of a relation as an Object; if `asked` says so, as a new version of a named one."""
        if asked is not None and asked.is_asked:
            asked.check(name)
            table = persistent_table(str(name), scope, self.job_id)
            found = await refresh(self, table, relation, shape, asked)
            return Object(self, found.table, found.schema or await schema_of(self.client, found.table))
        form = form_of(relation, shape)
        table, keeper = await self._table(name, scope)
        schema = await self._create_as(table, form.schema, form.query, settings or form.settings)
        await self.note("materialize", table, form.relation, form.query)
        return Object(self, table, schema, keeper)

    async def create_object_from_file(self, path: PathLike, **given: Unpack[FileOptions]) -> Object:
        """Create an Object from a file, which the engine reads unless it is on another machine."""
        return await sources.from_file(self, path, reading_of("create_object_from_file", given))

    async def create_object_from_url(self, url: str, **given: Unpack[UrlOptions]) -> Object:
        """Create an Object from the rows at an address."""
        return await sources.from_url(self, url, reading_of("create_object_from_url", given))

    async def insert_from(self, verb: str, into: Object, place: PathLike, given: Mapping[str, Any]) -> int:
        """Insert the rows of a file or an address; return how many. `verb` is the method of Object that was called."""
        reading = reading_of(verb, given)
        if verb == "insert_from_url":
            return await sources.insert_url(into, str(place), reading)
        return await sources.insert_file(into, place, reading)

    async def _create_as(
        self, table: str, schema: Schema, query: str, settings: Settings | None = None, granule: int = 0
    ) -> Schema:
        """Create a table from a query; return its schema, with the columns that ClickHouse gave it."""
        mark = new_mark()
        client, new = self.client, self._new(table, schema, mark, granule=granule)
        found = await make_anew(client, table, mark, lambda: client.tables.make_as(client, new, query, settings))
        await _check_alone(client, table, mark)
        if schema.ordered:
            for statement in client.tables.in_place(table):
                await repeated(client, statement)
        if is_mentioned(" ".join([*found.columns[0], *found.columns[1]])):
            await drop(self.client, table)
            raise exposed()
        fields = tuple(Field(name, kind) for name, kind in zip(*found.columns[:2], strict=True) if name != ORDER)
        return Schema(fields, schema.shape, schema.ordered)

    def _new(self, table: str, schema: Schema, mark: str, *, granule: int = 0, storage: Storage = PLAINLY) -> NewTable:
        comment = schema.table_comment(**self.facts, made=mark)
        return new_table(table, schema, comment, granule=granule, storage=storage)

    async def _table(self, name: str | None, scope: Scope) -> tuple[str, Keeper | None]:
        if name is not None and scope != "temporary":
            return persistent_table(name, scope, self.job_id), None
        if scope not in ("global", "temporary"):
            hint = "Give a name, or leave the scope out: an Object without a name ends with the context."
            raise InputError(field="scope", value=shown(repr(scope)), rule="a scope needs a name", hint=hint)
        keeper = await self._lifetime.new_table()
        if name is not None:
            await self._names.take(name, keeper, partial(_is_there, self.client))
        return keeper.table, keeper

    # ------------------------------------------------------------ find

    async def open_object(self, name: str, *, scope: Scope = "global", version: int | None = None) -> Object:
        """Return the Object of this name, in its latest or the given version; raise ObjectNotFound if there is none."""
        if scope == "temporary":
            return await _open_temporary(self, self._names.keeper_of(name), name, version)
        table = persistent_table(name, scope, self.job_id)
        found = await locate(self.client, table, None if version is None else check_version(version))
        if found is None:
            raise ObjectNotFound(name=name, hint="list_objects() lists the Objects.")
        return Object(self, *found, is_pinned=version is not None)

    async def open_reference(self, reference: Mapping[str, Any]) -> Object | View:
        """Return the Object or View that a reference names."""
        return (await self.open_references([reference]))[0]

    async def open_references(
        self, references: Sequence[Mapping[str, Any]], *, held: bool = False
    ) -> list[Object | View]:
        """Return the Objects and Views that references name, in the same order. Their tables are looked up together.

        With `held`, the caller knows that the tables are there: those whose schema is carried are not looked up.
        """
        carried = {table_in(each): schema for each in references if held and (schema := schema_in(each)) is not None}
        left = [table for table in dict.fromkeys(map(table_in, references)) if table not in carried]
        found = await locate_all(self.client, left) if left else {}
        found |= {table: Located(table, schema) for table, schema in carried.items()}
        self.fixed.update(table_in(each) for each in references if each.get(FIXED))
        return [_opened(self, reference, found.get(table_in(reference))) for reference in references]

    async def list_objects(self) -> list[str]:
        """Return the names of the global Objects, sorted."""
        found = await self.client.rows(
            "SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'p_') ORDER BY name"
        )
        return sorted({name for table in found.columns[0] if (name := name_of(table)) is not None})

    async def delete_object(self, what: str | Object, *, scope: Scope = "global") -> bool:
        """Delete an Object, given by name or as itself, temporary ones too; return whether there was one."""
        return await deleting.delete(self, what, scope)

    def groups(self, frame: Frame, keys: Sequence[Any], named: Mapping[str, Any]) -> Groups:
        """Return the rows of a frame, grouped. Frames call this, because `groups` imports `frames`."""
        return Groups(frame, keys, named=named)


async def _check_alone(client: DataClient, table: str, mark: str) -> None:
    """Raise DataRefused if a new table has the name of an Object with versions; the table is dropped then."""
    if scope_of(table) != "temporary" and await withdraw_plain(client, table, mark):
        raise DataRefused(code=TAKEN, cause=f"Table {table} already exists, in versions")


def _opened(context: Context, reference: Mapping[str, Any], located: Located | None) -> Object | View:
    if located is None:
        raise ObjectNotFound(name=table_in(reference), hint="Its table is gone.")
    found = Object(context, *located)
    if reference.get("object_type") != "view":
        return found
    fields = reference.get("selected_fields") or ()
    window = window_in(reference, tuple(with_paths(own_columns(found._table), fields)))
    shape: Shape = found.shape
    if window.fields is not None and found.shape in ("table", "list"):
        shape = "list" if len(window.fields) == 1 and reference.get("shape") != "table" else "table"
    return View(context, found._table, window, shape)


async def _open_temporary(context: Context, keeper: Keeper, name: str, version: int | None) -> Object:
    found = await read_schemas(context.client, [keeper.table])
    if version is not None or keeper.table not in found:
        hint = "list_objects() lists the Objects." if version is None else "Temporary Objects have no versions."
        raise ObjectNotFound(name=name, hint=hint)
    return Object(context, keeper.table, found[keeper.table], keeper)


async def _is_there(client: DataClient, table: str) -> bool:
    return bool(await read_schemas(client, [table]))


# ---------------------------------------------------------------- the current one


async def current_context() -> Context:
    """Return the innermost open context; in a task, the context of its run. Raise NoContext if there is none."""
    found = _current.get()
    if found is not None:
        return found
    provider = _provider.get()
    if provider is None:
        raise NoContext(call="An Object", hint="Open one: async with data_context(): …")
    return await provider()


def is_context_around() -> bool:
    """Return whether `current_context` would find a context."""
    return _current.get() is not None or _provider.get() is not None


class provided_by:
    """Make `current_context` and `data_context` give the provider's context, which is opened on first use."""

    __slots__ = ("_provider", "_token")

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __enter__(self) -> None:
        self._token = _provider.set(self._provider)

    def __exit__(self, *error: object) -> None:
        _provider.reset(self._token)


@asynccontextmanager
async def data_context(*, oplog: bool | None = None, url: str | None = None) -> AsyncIterator[Context]:
    """Open a context in which Objects are made; they can be used in contexts inside of this one too.

    With `oplog`, every operation is logged for `lineage`; None takes the setting. In a task this gives the context of
    the run instead, and ignores the arguments, so that the Objects which the task returns outlive the block.
    """
    provider = _provider.get()
    if provider is not None:
        yield await provider()
        return
    async with opened_context(oplog=oplog, url=url) as context:
        token = _current.set(context)
        try:
            yield context
        finally:
            _current.reset(token)


@asynccontextmanager
async def opened_context(*, oplog: bool | None = None, url: str | None = None) -> AsyncIterator[Context]:
    """Open a context without making it the current one: it is used only through the value that this gives."""
    address = url or get_ch_url()
    client = await open_client(address)
    try:
        directory = directory_of(address)
        async with swept(client, directory):
            context = Context(
                client,
                Lifetime(client, directory),
                reads_files=address.startswith("chdb://"),
                oplog=Oplog(client) if (settings().oplog if oplog is None else oplog) else None,
            )
            try:
                yield context
            finally:
                await context.end()
    finally:
        await close_client(address)
