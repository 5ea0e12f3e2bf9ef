"""`data_context`: inside it, Objects are made and used; what has no name ends with it."""

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
from aaiclick.data.views import View, table_in, window_in
from aaiclick.errors import DataRefused, InputError, NoContext, ObjectNotFound, StaleObject
from aaiclick.telemetry.masks import is_mentioned
from aaiclick.urls import shown

Provider = Callable[[], Awaitable["Context"]]

_current: ContextVar[Context | None] = ContextVar("data_context", default=None)
_provider: ContextVar[Provider | None] = ContextVar("data_context_provider", default=None)


class Keeping(TypedDict, total=False):
    """How a new Object is called and kept."""

    name: str | None
    scope: Scope
    order: bool
    engine: str
    order_by: str | Sequence[str]
    partition_by: str | Sequence[str]


class Context:
    """Where Objects are made. Its temporary tables end with it."""

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
        """Whether the engine sees the files of this machine."""
        self._lifetime = lifetime
        self._oplog = oplog
        self.job_id = job_id
        facts = {"job_id": job_id, "installation": installation}
        self.facts = {name: fact for name, fact in facts.items() if fact}
        """What is written into the comment of each table."""
        self.referred: set[object] = set()
        """Keepers of tables that something out of memory refers to: those live as long as the context."""
        self.expected: list[tuple[str, str]] = []
        """What was expected and not so: whether it failed or warned, and what was found."""
        self._names = TemporaryNames()

    @property
    def client(self) -> DataClient:
        """The way to ClickHouse, while the context lasts."""
        if self._client is None:
            raise StaleObject(what="This Object")
        return self._client

    async def end(self) -> None:
        """Drop what is temporary. Objects that are left are stale from now on."""
        if self._client is not None:
            await self.flush_oplog()
            self._client = None
            await self._lifetime.end()
            self.referred.clear()
            self._names.clear()

    async def note(
        self, operation: str, result: str, sources: Sequence[str] | Relation = (), query: str = "", columns: Any = None
    ) -> None:
        """Write into the log of operations, if there is one."""
        if self._oplog is not None:
            await self._oplog.note(operation, result, sources, query, columns)

    async def flush_oplog(self) -> None:
        """Let the log of operations be up to date."""
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
        """An empty Object with these columns. With a name it stays: for everybody, or for the job.

        `engine`, `order_by` and `partition_by` say how ClickHouse keeps it.
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
        """An Object with these values: a scalar, a list, a dict, records, or a frame of Arrow, pandas or polars."""
        if isinstance(value, Frame):
            return await value.materialize(kept.get("name"), scope=kept.get("scope", "global"))
        schema, data = tabulate(value, fields, nan_to_null)
        made = await self.create_object(schema, **kept)
        try:
            if data.num_rows:
                await self.client.insert(made.table, data)
        except BaseException:  # a part of it is worse than nothing
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
        """A table with the rows of a relation, made by one query; or a new version of an Object that is there."""
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
        """An Object with the rows of a file: the engine reads it, unless it is on another machine."""
        return await sources.from_file(self, path, reading_of("create_object_from_file", given))

    async def create_object_from_url(self, url: str, **given: Unpack[UrlOptions]) -> Object:
        """An Object with the rows that an address gives."""
        return await sources.from_url(self, url, reading_of("create_object_from_url", given))

    async def insert_from(self, verb: str, into: Object, place: PathLike, given: Mapping[str, Any]) -> int:
        """Add the rows of a file or an address to an Object, as its method of this name says; gives how many."""
        reading = reading_of(verb, given)
        if verb == "insert_from_url":
            return await sources.insert_url(into, str(place), reading)
        return await sources.insert_file(into, place, reading)

    async def _create_as(
        self, table: str, schema: Schema, query: str, settings: Settings | None = None, granule: int = 0
    ) -> Schema:
        """Make a table of the rows that a query gives; gives its schema with the columns that it then has."""
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
            hint = "Give a name, or leave the scope out: without a name, it ends with the context."
            raise InputError(field="scope", value=shown(repr(scope)), rule="a scope is that of a name", hint=hint)
        keeper = await self._lifetime.new_table()
        if name is not None:
            await self._names.take(name, keeper, partial(_is_there, self.client))
        return keeper.table, keeper

    # ------------------------------------------------------------ find

    async def open_object(self, name: str, *, scope: Scope = "global", version: int | None = None) -> Object:
        """The Object of this name: its latest version, or this one."""
        if scope == "temporary":
            return await _open_temporary(self, self._names.keeper_of(name), name, version)
        table = persistent_table(name, scope, self.job_id)
        found = await locate(self.client, table, None if version is None else check_version(version))
        if found is None:
            raise ObjectNotFound(name=name, hint="list_objects() tells which there are.")
        return Object(self, *found, is_pinned=version is not None)

    async def open_reference(self, reference: Mapping[str, Any]) -> Object | View:
        """The Object or View that a reference names."""
        return (await self.open_references([reference]))[0]

    async def open_references(self, references: Sequence[Mapping[str, Any]]) -> list[Object | View]:
        """The Objects and Views that references name; one query asks for many of them."""
        found = await locate_all(self.client, list(dict.fromkeys(map(table_in, references))))
        return [_opened(self, reference, found.get(table_in(reference))) for reference in references]

    async def list_objects(self) -> list[str]:
        """The names of the Objects that stay, for everybody."""
        found = await self.client.rows(
            "SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, 'p_') ORDER BY name"
        )
        return sorted({name for table in found.columns[0] if (name := name_of(table)) is not None})

    async def delete_object(self, what: str | Object, *, scope: Scope = "global") -> bool:
        """Delete an Object, by its name or itself, which may be temporary; says whether there was one."""
        return await deleting.delete(self, what, scope)

    def groups(self, frame: Frame, keys: Sequence[Any], named: Mapping[str, Any]) -> Groups:
        """The rows of a frame, grouped."""
        return Groups(frame, keys, named=named)


async def _check_alone(client: DataClient, table: str, mark: str) -> None:
    """Refuse a new table of an Object that has versions."""
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
        hint = "list_objects() tells which there are." if version is None else "What is temporary has no versions."
        raise ObjectNotFound(name=name, hint=hint)
    return Object(context, keeper.table, found[keeper.table], keeper)


async def _is_there(client: DataClient, table: str) -> bool:
    return bool(await read_schemas(client, [table]))


# ---------------------------------------------------------------- the current one


async def current_context() -> Context:
    """The innermost context that is open here; in a task, that of its run."""
    found = _current.get()
    if found is not None:
        return found
    provider = _provider.get()
    if provider is None:
        raise NoContext(call="An Object", hint="Open one: async with data_context(): …")
    return await provider()


def is_context_around() -> bool:
    """Whether `current_context` has one to give."""
    return _current.get() is not None or _provider.get() is not None


class provided_by:
    """Inside, whoever needs a context gets this one, which is opened only then."""

    __slots__ = ("_provider", "_token")

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def __enter__(self) -> None:
        self._token = _provider.set(self._provider)

    def __exit__(self, *error: object) -> None:
        _provider.reset(self._token)


@asynccontextmanager
async def data_context(*, oplog: bool | None = None, url: str | None = None) -> AsyncIterator[Context]:
    """Where Objects are made and used; they may be used in contexts inside this one too.

    With `oplog`, every operation is noted: see `lineage`. In a task it is the context of the run, so that what the
    task returns outlives it.
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
    """A context that its holder calls by itself: whoever asks for the current one does not get it."""
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
