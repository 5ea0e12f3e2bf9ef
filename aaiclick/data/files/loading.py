"""Loads the rows of a file into an Object: each value exactly, or as `on_error` says if it cannot be read.

The cells are first stored unchanged and then checked by ClickHouse. So the first bad value can be named, and the good
rows are inserted by one statement. If no types are given, they are guessed from all cells.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aaiclick.data.clients.tables import NewTable
from aaiclick.data.display import glimpse
from aaiclick.data.files import file_reader
from aaiclick.data.files.file_reader import FileSource
from aaiclick.data.files.file_types import TO_GUESS, described, structure_of, unreadable
from aaiclick.data.files.staging import (
    IN_ORDER,
    NAMED,
    Cells,
    is_of_cells,
    named,
    null_cell,
    stage,
    stage_named,
    stage_texts,
    wrong_width,
)
from aaiclick.data.objects import Object
from aaiclick.data.parsing import type_guesses
from aaiclick.data.parsing.file_options import Options, read_options
from aaiclick.data.parsing.type_guesses import Guess, Text
from aaiclick.data.sql import quoting
from aaiclick.data.tables.appending import add_rows
from aaiclick.data.tables.lifetimes import Keeper, drop
from aaiclick.data.typing.grammar import parse
from aaiclick.data.typing.schema import Schema
from aaiclick.data.typing.tabulation import tabulate
from aaiclick.errors import DataRefused, InputError
from aaiclick.telemetry.masks import mask_text
from aaiclick.urls import did_you_mean, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.data.clients.contract import DataClient
    from aaiclick.data.context import Context
    from aaiclick.data.tables.table_names import Scope

OnError = Literal["refuse", "null", "skip", "collect"]
ON_ERROR = ("refuse", "null", "skip", "collect")
GUESSED = {**IN_ORDER, "precise_float_parsing": 1}

REJECTED = {
    "row": "UInt64",
    "column": "String",
    "value": "Nullable(String)",
    "reason": "String",
    "cells": "Array(Nullable(String))",
}
"""The columns of the Object of rejected rows: the first bad value, the reason, and all cells as they were read."""


class Asked:
    """The options of reading a file, checked before anything is opened. `schema` is None if no fields are given."""

    def __init__(self, fields: Mapping[str, object] | None, options: Mapping[str, Any] | None, on_error: str) -> None:
        self.options = read_options(options)
        if on_error not in ON_ERROR:
            hint = did_you_mean(str(on_error), ON_ERROR)
            rule = f"it must be one of {', '.join(ON_ERROR)}"
            raise InputError(field="on_error", value=shown(repr(on_error)), rule=rule, hint=hint)
        self.on_error = on_error
        self.schema = None if fields is None else Schema.from_fields(fields)
        needless = {"compression"}
        given = [name for name in options or () if name not in needless] + (
            ["on_error"] if on_error != "refuse" else []
        )
        if fields is None and given:
            rule = "it says how to read texts into fields, and no fields are given"
            raise InputError(field=given[0], value="without fields", rule=rule, hint="Give fields={'name': 'Type', …}.")
        self._is_plain = fields is None and not options

    def refuse_elsewhere(self) -> None:
        """Raise InputError if fields or options are given: a server on another machine does not read local files."""
        if not self._is_plain:
            rule = "a ClickHouse server on another machine cannot read files of this machine"
            hint = "Read it as it is, or give its address to create_object_from_url."
            raise InputError(field="fields", value="with a ClickHouse server", rule=rule, hint=hint)


async def load(
    context: Context, keeper: Keeper, source: FileSource, schema: Schema, asked: Asked, name: str | None, scope: Scope
) -> Object:
    """Make an Object of the rows of a source, read as the given fields.

    The keeper's table holds the cells meanwhile, and is dropped at the end.
    """
    staged, options, on_error = keeper.table, asked.options, asked.on_error
    try:
        cells = await stage(context.client, source, schema, options, staged)
        if on_error in ("refuse", "null"):
            await _refuse_first(context.client, source, cells, only_strict=on_error == "null")
        made = await context.create_object(schema, name=name, scope=scope)
        try:
            await _take(context, made, cells, on_error)
            if on_error == "collect":
                made.rejected = await _collect(context, cells)
        except BaseException:  # leave no Object with a part of the rows
            await drop(context.client, made.table)
            raise
    finally:
        await drop(context.client, staged)
    await context.note("load", made.table, (), source.noted)
    return made


# ---------------------------------------------------------------- without types


async def load_guessed(
    context: Context, keeper: Keeper, source: FileSource, options: Options, name: str | None, scope: Scope
) -> Object:
    """Make an Object of the rows of a source; their types are the file's own, or guessed from all values."""
    if not is_of_cells(source) and source.format not in NAMED:
        kinds = await described(context.client, source, options)
        query = f"SELECT * FROM {source.table(structure_of(kinds), options)}"  # noqa: S608 (quoted)
        return await _made(context, source, query, TO_GUESS, name, scope)
    try:
        if is_of_cells(source):
            found = await _guess_cells(context.client, source, options, keeper.table)
        else:
            found = await _guess_named(context.client, source, options, keeper.table)
        return await _made(context, source, _taken(keeper.table, found), GUESSED, name, scope)
    finally:
        await drop(context.client, keeper.table)


async def load_here(
    context: Context, keeper: Keeper, path: str | os.PathLike[str], known: str, name: str | None, scope: Scope
) -> Object:
    """Make an Object of a file that is read in this process and sent to ClickHouse on another machine."""
    source = file_reader.file_source(path, known)
    if known == "CSVWithNames":
        cells = await asyncio.to_thread(file_reader.read_cells, path)
        sent = Sent(cells.data, dict.fromkeys(cells.data.column_names, "Nullable(String)"), 0)
        return await _from_here(context, keeper, source, sent, _texts(cells.names, Options()), name, scope)
    if known != "JSONEachRow":
        read = await asyncio.to_thread(file_reader.read_here, path, known)
        return await context.create_object_from_value(read, name=name, scope=scope)
    schema, data = tabulate(await asyncio.to_thread(file_reader.read_lines, path))
    places = [named(number) for number in range(len(schema))]
    kinds = dict(zip(places, schema.types.values(), strict=True))
    columns = [
        _text(each, place) if parse(kind).bare.name == "String" else Guess(each, f"s.{place}")
        for each, (place, kind) in zip(schema.names, kinds.items(), strict=True)
    ]
    sent = Sent(data.rename_columns(places), kinds, 1)
    return await _from_here(context, keeper, source, sent, columns, name, scope)


class Sent(NamedTuple):
    """Columns read in this process, their types, and the number of the first row (0 if that holds the names)."""

    data: pa.Table
    kinds: Mapping[str, str]
    first: int


async def _from_here(
    context: Context,
    keeper: Keeper,
    source: FileSource,
    sent: Sent,
    columns: Sequence[Text | Guess],
    name: str | None,
    scope: Scope,
) -> Object:
    """Send columns to a table in ClickHouse, guess the types of those that are texts, and make the Object."""
    import pyarrow as pa  # here, to keep start-up light

    staged, count = keeper.table, sent.data.num_rows
    try:
        places = structure_of({"row": "UInt64", **sent.kinds})
        new = NewTable(staged, "row", columns=places, names=("row", *sent.kinds))
        await context.client.tables.make(context.client, new)
        if count:
            rows = pa.array(range(sent.first, count + sent.first), pa.uint64())
            await context.client.insert(staged, sent.data.append_column("row", rows))
        found = await _guess(context.client, staged, columns)
        return await _made(context, source, _taken(staged, found), GUESSED, name, scope)
    finally:
        await drop(context.client, staged)


async def _made(
    context: Context, source: FileSource, query: str, settings: Mapping[str, Any], name: str | None, scope: Scope
) -> Object:
    table, own = await context._table(name, scope)
    try:
        schema = await context._create_as(table, Schema((), "table"), query, settings)
    except DataRefused as error:
        raise unreadable(source, error) from error
    await context.note("load", table, (), source.noted)
    return Object(context, table, schema, own)


def _taken(staged: str, found: Sequence[Guess]) -> str:
    columns = ", ".join(f"{each.value} AS {quoting.name(each.name)}" for each in found)
    return f"SELECT {columns} FROM {quoting.name(staged)} AS s WHERE s.row > 0 ORDER BY s.row"  # noqa: S608 (quoted)


async def _guess_cells(client: DataClient, source: FileSource, options: Options, staged: str) -> list[Guess]:
    names = await stage_texts(client, source, options, staged)
    Schema.from_fields([(name, "String") for name in names])  # raises for invalid and duplicate names
    await _refuse_first(client, source, Cells(staged, wrong_width(len(names)), []), only_strict=False)
    return await type_guesses.guess(client, staged, _texts(names, options))


def _texts(names: Sequence[str], options: Options) -> list[Text]:
    found = []
    for number, name in enumerate(names):
        text = f"assumeNotNull(s.c{number + 1})"
        null = [null_cell(text, options, is_text=is_text) for is_text in (False, True)]
        found.append(Text(name, text, null[0], null[1], type_guesses.EVERYTHING))
    return found


async def _guess_named(client: DataClient, source: FileSource, options: Options, staged: str) -> list[Guess]:
    """Guess the columns of JSON: texts may be times, numbers have number types, nested values stay."""
    kinds = await described(client, source, options)
    scalar = {name: _guessable(kind) for name, kind in kinds.items()}
    structure = {name: kind if scalar[name] is None else "Nullable(String)" for name, kind in kinds.items()}
    await stage_named(client, source, structure, options, staged)
    columns = [
        Guess(name, f"s.{named(number)}") if which is None else _text(name, named(number), which)
        for number, (name, which) in enumerate(scalar.items())
    ]
    return await _guess(client, staged, columns)


async def _guess(client: DataClient, staged: str, columns: Sequence[Text | Guess]) -> list[Guess]:
    """Guess the types of the texts among the columns; columns that are known already stay."""
    texts = [each for each in columns if isinstance(each, Text)]
    found = {each.name: each for each in await type_guesses.guess(client, staged, texts)}
    return [each if isinstance(each, Guess) else found[each.name] for each in columns]


def _text(name: str, column: str, kinds: Sequence[str] = type_guesses.TIMES) -> Text:
    null = f"isNull(s.{column})"
    return Text(name, f"assumeNotNull(s.{column})", null, null, kinds, kinds == type_guesses.NUMBERS)


def _guessable(kind: str) -> Sequence[str] | None:
    """Return the candidate types of a JSON column by the type that ClickHouse found; None if its values are nested."""
    try:
        bare = parse(kind).bare
    except InputError:
        return None
    if bare.name == "String":
        return type_guesses.TIMES
    if bare.name in type_guesses.NUMBERS:
        return type_guesses.NUMBERS
    return None if bare.parts else (str(bare),)


# ---------------------------------------------------------------- statements


async def _refuse_first(client: DataClient, source: FileSource, cells: Cells, *, only_strict: bool) -> None:
    """Raise InputError for the first value that cannot be read; with `only_strict`, in non-Nullable columns alone."""
    wrong = cells.first_wrong(only_strict)
    shown_texts = ", ".join(["NULL", *(cell.shown for cell in cells.fields)])
    found = await client.rows(
        f"SELECT row, {wrong} AS which, ({cells.reasons})[which], ([{shown_texts}]::Array(Nullable(String)))[which]"  # noqa: S608 (quoted)
        f" FROM {quoting.name(cells.table)} WHERE row > 0 AND which > 0 ORDER BY row LIMIT 1"
    )
    hint = "Give on_error='skip' or 'collect' to go on without such rows."
    for row, which, reason, value in zip(*found.columns, strict=True):
        column = f", column {shown(cells.fields[which - 2].name)}" if which > 1 else ""
        told = "NULL" if value is None else mask_text(glimpse(value))
        raise InputError(
            field=f"{source.name}, row {row}{column}",
            value=told if which > 1 else "it",
            rule=reason,
            hint=hint,
        )


async def _take(context: Context, made: Object, cells: Cells, on_error: str) -> None:
    """Insert the good rows; with on_error="null", bad values in Nullable columns become NULL."""
    values = []
    for cell in cells.fields:
        value = f"if({cell.reason} = '', {cell.value}, NULL)" if on_error == "null" else cell.value
        values.append(value if cell.kind.is_nullable else f"assumeNotNull({value})")
    where = "row > 0" + ("" if on_error in ("refuse", "null") else f" AND {cells.first_wrong(False)} = 0")
    columns = ", ".join(quoting.name(cell.name) for cell in cells.fields)
    query = f"SELECT {', '.join(values)} FROM {quoting.name(cells.table)} WHERE {where} ORDER BY row"  # noqa: S608 (quoted)
    settings = {**IN_ORDER, "precise_float_parsing": 1}
    await add_rows(
        context,
        made.table,
        lambda table: f"INSERT INTO {quoting.name(table)} ({columns}) {query}",
        settings,
        _no_matter,
    )


async def _collect(context: Context, cells: Cells) -> Object:
    """Make an Object of the bad rows, each with its first reason."""
    rejected = await context.create_object(REJECTED)
    texts = ", ".join(cell.shown for cell in cells.fields)
    names = ", ".join(["''", *(quoting.text(cell.name) for cell in cells.fields)])
    columns = ", ".join(map(quoting.name, REJECTED))
    query = (
        f"SELECT row, [{names}][which],"  # noqa: S608 (quoted)
        f" ([NULL, {texts}]::Array(Nullable(String)))[which], ({cells.reasons})[which],"
        f" [{texts}]::Array(Nullable(String)) FROM (SELECT *, {cells.first_wrong(False)} AS which"
        f" FROM {quoting.name(cells.table)} WHERE row > 0) WHERE which > 0 ORDER BY row"
    )
    insert = f"({columns}) {query}"
    await add_rows(
        context, rejected.table, lambda table: f"INSERT INTO {quoting.name(table)} {insert}", IN_ORDER, _no_matter
    )
    return rejected


async def _no_matter() -> int:
    """A `Count` for `add_rows`, whose result is not used here."""
    return 0
