"""Makes Objects of files and URLs, whole or in part, and inserts their rows into existing Objects."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from aaiclick.data.files import file_reader, json_paths, loading, staging
from aaiclick.data.files.file_reader import FileSource
from aaiclick.data.files.file_types import TO_GUESS, described, structure_of, unreadable
from aaiclick.data.files.loading import Asked, OnError
from aaiclick.data.files.staging import stage_content
from aaiclick.data.frames import Frame, Query
from aaiclick.data.objects import Object
from aaiclick.data.parsing.file_options import Options, read_options
from aaiclick.data.tables.lifetimes import drop
from aaiclick.data.tables.stored_tables import form_of, table_of
from aaiclick.data.tables.table_names import Scope
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.schema import Field, Schema
from aaiclick.data.verbs.operands import check_columns, check_count
from aaiclick.errors import DataRefused, InputError
from aaiclick.urls import did_you_mean, mask_url, shown

if TYPE_CHECKING:
    from aaiclick.data.context import Context

PathLike = str | os.PathLike[str]

REDIRECTS_MAX = 20
AS_READ = {"max_threads": 1, "max_insert_threads": 1}
"""Settings that keep the order of a file's rows: `limit` takes its first rows."""


class FileOptions(TypedDict, total=False):
    """The options of functions that read a file."""

    fields: Mapping[str, object] | None
    format: str | None
    options: Mapping[str, Any] | None
    on_error: OnError
    columns: Sequence[str] | None
    where: Any
    limit: int | None
    name: str | None
    scope: Scope
    file_format: str | None


class UrlOptions(FileOptions, total=False):
    """The options of functions that read a URL."""

    json_path: str | Sequence[str | int] | None
    redirects: int


@dataclass(frozen=True)
class FileReading:
    """The options of one call that reads a file or a URL."""

    fields: Mapping[str, object] | None = None
    format: str | None = None
    options: Mapping[str, Any] | None = None
    on_error: OnError = "refuse"
    columns: Sequence[str] | None = None
    where: Any = None
    limit: int | None = None
    name: str | None = None
    scope: Scope = "global"
    file_format: str | None = None
    json_path: str | Sequence[str | int] | None = None
    redirects: int = 0

    @property
    def asked(self) -> Asked:
        """The checked options that say how texts are read."""
        return Asked(self.fields, self.options, self.on_error)

    def check(self) -> Options:
        """Check the options before anything is opened; return the text options. Raise InputError if one is bad."""
        if self.limit is not None:
            check_count(self.limit, "limit")
        if isinstance(self.columns, str) or (self.columns is not None and not self.columns):
            hint = "Leave it out for all of them."
            raise InputError(
                field="columns", value=shown(repr(self.columns)), rule="it must be a list of names", hint=hint
            )
        if type(self.redirects) is not int or not 0 <= self.redirects <= REDIRECTS_MAX:
            rule = f"it must be from 0 to {REDIRECTS_MAX}"
            raise InputError(field="redirects", value=shown(repr(self.redirects)), rule=rule, hint="")
        return read_options(self.options)

    @property
    def is_whole(self) -> bool:
        return self.columns is None and self.where is None and self.limit is None


def reading_of(verb: str, given: Mapping[str, Any]) -> FileReading:
    """Return the options as a FileReading; raise TypeError, as Python would, for one that the function `verb` lacks."""
    known = list(UrlOptions.__annotations__ if verb.endswith("url") else FileOptions.__annotations__)
    for name in given:
        if name not in known:
            raise TypeError(f"{verb}() has no option {name!r}. {did_you_mean(name, known)}".strip())
    return FileReading(**given)


async def from_file(context: Context, path: PathLike, reading: FileReading) -> Object:
    """Make an Object of a file's rows. The engine reads the file; if it is on another machine, this process does."""
    reading.check()
    asked, given = reading.asked, reading.format or reading.file_format
    if context.reads_files:
        return await _made(context, file_reader.file_source(path, given), reading)
    asked.refuse_elsewhere()
    known, keeper = file_reader.format_here(path, given), await context._lifetime.new_table()
    return await _chosen(
        context, reading, lambda name, scope: loading.load_here(context, keeper, path, known, name, scope)
    )


async def from_url(context: Context, url: str, reading: FileReading) -> Object:
    """Make an Object of the rows at a URL."""
    _ = reading.asked
    async with _at(context, url, reading) as (source, unpacked):
        return await _made(context, source, unpacked)


@asynccontextmanager
async def _fetched(
    context: Context, url: str, given: str | None, reading: FileReading, options: Options
) -> AsyncIterator[FileSource]:
    """Yield the source at a URL: ClickHouse fetches it. With redirects it is fetched here, and stored meanwhile."""
    source = file_reader.url_source(url, given)
    if not reading.redirects:
        yield source
        return
    from aaiclick.data.files import redirects, unpacking  # here, to keep start-up light: rarely needed, many modules

    content = await asyncio.to_thread(redirects.fetch, url, reading.redirects)
    content = await asyncio.to_thread(unpacking.unpacked, content, url, options.compression)
    keeper = await context._lifetime.new_table()
    try:
        text = await stage_content(context.client, keeper.table, content)
        yield source._replace(call="", text=text, place=source.table())
    finally:
        await drop(context.client, keeper.table)


@asynccontextmanager
async def _at(context: Context, url: str, reading: FileReading) -> AsyncIterator[tuple[FileSource, FileReading]]:
    """Yield the source at a URL and its options. With `json_path`, the source is a table that is dropped at the end."""
    options, given = reading.check(), reading.format or reading.file_format
    if reading.json_path is None:
        async with _fetched(context, url, given, reading, options) as found:
            yield found, reading
        return
    if given not in (None, "JSON"):
        hint = "Leave the format out."
        raise InputError(
            field="json_path", value=shown(str(reading.json_path)), rule="it only applies to JSON", hint=hint
        )
    async with _fetched(context, url, "RawBLOB", reading, options) as whole:
        lines = await json_paths.lines_at(context.client, whole, reading.json_path, options)
    keeper = await context._lifetime.new_table()
    try:
        source = await json_paths.stage(context.client, keeper.table, whole, lines)
        left = {name: value for name, value in (reading.options or {}).items() if name != "compression"}
        yield source, replace(reading, options=left or None)
    finally:
        await drop(context.client, keeper.table)


async def _made(context: Context, source: FileSource, reading: FileReading) -> Object:
    asked = reading.asked
    if asked.schema is None and not reading.is_whole and staging.has_types(source):
        return await _chosen_while_reading(context, source, reading)

    async def load(name: str | None, scope: Scope) -> Object:
        keeper = await context._lifetime.new_table()
        if asked.schema is not None:
            return await loading.load(context, keeper, source, asked.schema, asked, name, scope)
        return await loading.load_guessed(context, keeper, source, asked.options, name, scope)

    return await _chosen(context, reading, load)


async def _chosen(
    context: Context, reading: FileReading, load: Callable[[str | None, Scope], Awaitable[Object]]
) -> Object:
    """Load an Object; if `where`, `limit` or `columns` are given, make another one of the chosen rows and columns."""
    if reading.is_whole:
        return await load(reading.name, reading.scope)
    whole = await load(None, "global")
    found = _narrowed(whole, reading)
    made = await context.materialize(found._relation, "table", reading.name, reading.scope, settings=AS_READ)
    made.rejected = whole.rejected
    return made


def _narrowed(found: Frame, reading: FileReading) -> Frame:
    if reading.where is not None:
        conditions = reading.where if isinstance(reading.where, list | tuple) else [reading.where]
        found = found.where(*conditions)
    if reading.limit is not None:
        found = found.limit(reading.limit)
    return found if reading.columns is None else found[list(reading.columns)]


async def _chosen_while_reading(context: Context, source: FileSource, reading: FileReading) -> Object:
    """Make an Object of some rows and columns of a file that has types, which ClickHouse chooses while it reads."""
    options = reading.asked.options
    kinds = await described(context.client, source, options)
    schema = Schema(tuple(Field(name, kind) for name, kind in kinds.items()), "table")
    rows = replace(table_of(source.name, schema), function=source.table(structure_of(kinds), options))
    form = form_of(_narrowed(Query(context, rows, "table"), reading)._relation, "table")
    table, keeper = await context._table(reading.name, reading.scope)
    try:
        made = await context._create_as(table, form.schema, form.query, {**TO_GUESS, **AS_READ})
    except DataRefused as error:
        raise unreadable(source, error) from error
    await context.note("load", table, (), mask_url(form.query) if not source.place else source.noted)
    return Object(context, table, made, keeper)


# ---------------------------------------------------------------- into an Object


async def insert_file(into: Object, path: PathLike, reading: FileReading) -> int:
    """Insert the rows of a file into an Object and return their number."""
    context = into._context
    _check_unnamed(reading)
    if not context.reads_files:
        return await _add(into, await from_file(context, path, reading))
    source = file_reader.file_source(path, reading.format or reading.file_format)
    return await _add(into, await _made(context, source, await _as_rows_of(into, source, reading)))


async def insert_url(into: Object, url: str, reading: FileReading) -> int:
    """Insert the rows at a URL into an Object and return their number."""
    _check_unnamed(reading)
    async with _at(into._context, url, reading) as (source, unpacked):
        return await _add(into, await _made(into._context, source, await _as_rows_of(into, source, unpacked)))


def _check_unnamed(reading: FileReading) -> None:
    if reading.name is not None or reading.scope != "global":
        given = reading.name or reading.scope
        raise InputError(
            field="name", value=shown(repr(given)), rule="the Object that receives the rows has a name", hint=""
        )


async def _add(into: Object, made: Object) -> int:
    added = await into.insert(made)
    into.rejected = made.rejected
    return added


async def _as_rows_of(into: Object, source: FileSource, reading: FileReading) -> FileReading:
    """Return the options with the types of the Object's columns as fields; raise InputError for columns it lacks."""
    if reading.fields is not None:
        return reading
    there = await staging.names_of(into._context.client, source, reading.check(), into.columns)
    check_columns(there, reading.columns or ())
    names = list(reading.columns or there)
    if unexpected := [name for name in names if name not in into.schema]:
        rule = f"the Object has no such column: it has {shown(', '.join(into.columns))}"
        hint = "Choose columns=[…], or insert what create_object_from_file gives, with other names."
        raise InputError(field=source.name, value=shown(", ".join(unexpected)), rule=rule, hint=hint)
    fields = {name: field.type for name in there if name in into.schema and (field := into.schema[name])}
    if any(parse(kind).bare.parts for kind in fields.values()) and not staging.has_types(source):
        return reading  # values of nested types cannot be read from texts
    return replace(reading, fields=fields)
