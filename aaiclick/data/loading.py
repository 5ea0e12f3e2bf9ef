"""Rows of a file into columns of given types: each value exactly, or as the caller wants it where it cannot be read.

The cells are stored as they are written, then looked at by ClickHouse: the first that is wrong can be named, and the
rows that are right are taken in one statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aaiclick.data import sql
from aaiclick.data.display import glimpse
from aaiclick.data.file_options import ENCODINGS, Options, cell_settings, read_options
from aaiclick.data.files import Source
from aaiclick.data.grammar import Type, parse
from aaiclick.data.lifetimes import Keeper, drop, make_anew, new_mark
from aaiclick.data.objects import Object
from aaiclick.data.schema import Schema
from aaiclick.data.texts import reading
from aaiclick.errors import DataRefused, InputError
from aaiclick.telemetry.masks import mask_text
from aaiclick.urls import did_you_mean, shown

if TYPE_CHECKING:
    from aaiclick.data.clients.contract import DataClient
    from aaiclick.data.context import Context
    from aaiclick.data.names import Scope

OnError = Literal["refuse", "null", "skip", "collect"]
ON_ERROR = ("refuse", "null", "skip", "collect")

CELLS = {"CSV": "CSV", "TSV": "TSVRaw", "TabSeparated": "TSVRaw"}
NAMED = ("JSONEachRow", "JSONLines", "NDJSON", "JSON")
WIDTHS = (50, 1_000, 10_000)
"""How many columns are looked for in the first row."""

IN_ORDER = {"max_threads": 1, "max_insert_threads": 1, "max_block_size": 65_409}
REJECTED = {
    "row": "UInt64",
    "column": "String",
    "value": "Nullable(String)",
    "reason": "String",
    "cells": "Array(Nullable(String))",
}
"""The columns of rejected rows: the first value that was wrong, why, and all cells as they were read."""

CAUSE_MAX = 300
FEW, MANY = "the row has too few columns", "the row has too many columns"


class Asked:
    """How a file is to be read: checked before anything is opened."""

    def __init__(self, fields: Mapping[str, object] | None, options: Mapping[str, Any] | None, on_error: str) -> None:
        self.options = read_options(options)
        if on_error not in ON_ERROR:
            hint = did_you_mean(str(on_error), ON_ERROR)
            rule = f"one of {', '.join(ON_ERROR)}"
            raise InputError(field="on_error", value=shown(repr(on_error)), rule=rule, hint=hint)
        self.on_error = on_error
        self.schema = None if fields is None else Schema.from_fields(fields)
        needless = {"compression"}
        given = [name for name in options or () if name not in needless] + (
            ["on_error"] if on_error != "refuse" else []
        )
        if fields is None and given:
            rule = "it says how texts are read into fields, and no fields are given"
            raise InputError(field=given[0], value="without fields", rule=rule, hint="Give fields={'name': 'Type', …}.")
        self._is_plain = fields is None and not options

    def refuse_elsewhere(self) -> None:
        """A ClickHouse server does not see the files of this machine."""
        if not self._is_plain:
            rule = "a server on another machine does not read the files of this one"
            hint = "Read it as it is, or give its address to create_object_from_url."
            raise InputError(field="fields", value="with a ClickHouse server", rule=rule, hint=hint)


class Cell(NamedTuple):
    """A field of an Object, and the expressions that read it from the table of cells."""

    name: str
    kind: Type
    shown: str
    reason: str
    value: str


class Cells(NamedTuple):
    """A table of cells: how its rows are numbered, what makes a row wrong as a whole, and its fields."""

    table: str
    wrong_row: str
    fields: list[Cell]

    @property
    def reasons(self) -> str:
        return f"[{', '.join([self.wrong_row, *(cell.reason for cell in self.fields)])}]"

    def first_wrong(self, only_strict: bool) -> str:
        """Which of the reasons counts first; 0 if the row is right."""
        reasons = [self.wrong_row] + [
            "''" if only_strict and cell.kind.is_nullable else cell.reason for cell in self.fields
        ]
        return f"arrayFirstIndex(reason -> reason != '', [{', '.join(reasons)}])"


async def load(
    context: Context, keeper: Keeper, source: Source, schema: Schema, asked: Asked, name: str | None, scope: Scope
) -> Object:
    """An Object with the rows of a source, read into these fields; the keeper's table has the cells meanwhile."""
    staged, options, on_error = keeper.table, asked.options, asked.on_error
    try:
        cells = await _stage(context.client, source, schema, options, staged)
        if on_error in ("refuse", "null"):
            await _refuse_first(context.client, source, cells, only_strict=on_error == "null")
        made = await context.create_object(schema, name=name, scope=scope)
        try:
            await _take(context.client, made, cells, on_error)
            if on_error == "collect":
                made.rejected = await _collect(context, cells)
        except BaseException:  # a part of it is worse than nothing
            await drop(context.client, made.table)
            raise
    finally:
        await drop(context.client, staged)
    await context.note("load", made.table, (), source.noted)
    return made


# ---------------------------------------------------------------- the cells, as they are written


async def _stage(client: DataClient, source: Source, schema: Schema, options: Options, staged: str) -> Cells:
    form = source.format.removesuffix("WithNames")
    if form in CELLS:
        return await _stage_cells(client, source.of(CELLS[form]), schema, options, staged)
    if source.format in NAMED:
        return await _stage_named(client, source, schema, options, staged)
    return await _stage_typed(client, source, schema, options, staged)


async def _stage_cells(client: DataClient, source: Source, schema: Schema, options: Options, staged: str) -> Cells:
    """Cells by their places: ClickHouse gives NULL for those that a row does not have."""
    settings = {**cell_settings(options), **IN_ORDER}
    names, has_header = schema.names, options.has_header(source.given)
    await _refuse_open_quote(client, source, options)
    if has_header:
        names = await _header(client, source, options, settings)
        _check_header(source, names, schema)
    count, first = len(names), int(has_header)
    places = ", ".join(f"c{place} Nullable(String)" for place in range(1, count + 2))
    cleaned = ", ".join(f"{_clean(f's.c{place}', source, options)} AS c{place}" for place in range(1, count + 2))
    query = f"SELECT rowNumberInAllBlocks() + {1 - first} AS row, {cleaned} FROM {source.table(places, options)} AS s"  # noqa: S608 (quoted)
    await _make(client, source, staged, query, settings)
    if (
        has_header
        and source.format == "CSV"
        and await _first_row(client, source, sql.name(staged), count + 1, options, {}) != names
    ):
        raise InputError(field="file", value=source.name, rule="it changed while it was read", hint="Read it again.")
    wrong = f"multiIf(isNotNull(c{count + 1}), '{MANY}', isNull(c{count}), '{FEW}', '')"
    fields = []
    for field in schema.fields:
        kind = parse(field.type)
        text = f"assumeNotNull(c{names.index(field.name) + 1})"
        null = f"{text} = {sql.text(options.null)}"
        if kind.bare.name not in ("String", "FixedString"):
            null = f"({null} OR trimBoth({text}) = '')"
        fields.append(_text_cell(field.name, kind, text, null, options))
    return Cells(staged, wrong, fields)


async def _header(client: DataClient, source: Source, options: Options, settings: Mapping[str, Any]) -> list[str]:
    """The texts of the first row."""
    one = {**settings, "max_block_size": 1, "input_format_parallel_parsing": 0}
    for width in WIDTHS:
        places = ", ".join(f"c{place} Nullable(String)" for place in range(1, width + 1))
        names = await _first_row(client, source, source.table(places, options), width, options, one)
        if names is None:
            rule = "it is empty: there is no row with the names of the columns"
            raise InputError(field="file", value=source.name, rule=rule, hint="Give options={'header': False}.")
        if len(names) < width:
            return names
    rule = f"its first row has more than {WIDTHS[-1]} columns"
    raise InputError(field="file", value=source.name, rule=rule, hint="")


async def _first_row(
    client: DataClient, source: Source, table: str, width: int, options: Options, settings: Mapping[str, Any]
) -> list[str] | None:
    """The texts of the first row, without those that it does not have; None if there is no row."""
    texts = ", ".join(_decoded(f"c{place}", options) if settings else f"c{place}" for place in range(1, width + 1))
    first = "" if settings else " WHERE row = 0"
    query = f"SELECT [{texts}] AS header FROM {table}{first} LIMIT 1"  # noqa: S608 (quoted)
    try:
        found = (await client.rows(query, settings)).columns[0]
    except DataRefused as error:
        raise _unreadable(source, error) from error
    if not len(found):
        return None
    return [str(text).removeprefix("\ufeff").rstrip("\r") for text in found[0] if text is not None]


async def _refuse_open_quote(client: DataClient, source: Source, options: Options) -> None:
    """ClickHouse takes all that follows a quote that is not closed for one cell."""
    if source.format != "CSV":
        return
    lines = source.of("LineAsString").table("line String", options)
    try:
        found = await client.rows(f"SELECT sum(countSubstrings(line, '\"')) % 2 FROM {lines}")  # noqa: S608 (quoted)
    except DataRefused as error:
        raise _unreadable(source, error) from error
    if found.columns[0][0]:
        rule = 'it has an odd number of ": one of them is not closed'
        raise InputError(field="file", value=source.name, rule=rule, hint='Write a " inside of a cell as "".')


def _check_header(source: Source, names: Sequence[str], schema: Schema) -> None:
    for name in schema.names:
        if names.count(name) != 1:
            there = ", ".join(names)[:300]
            rule = (
                f"there are {names.count(name)} columns of that name" if name in names else f"its columns are {there}"
            )
            where = f"{source.name}, column {shown(name)}"
            raise InputError(field="fields", value=where, rule=rule, hint=did_you_mean(name, names))


def _clean(column: str, source: Source, options: Options) -> str:
    """The text of a cell; TSV writes some characters with backslashes, and its lines may end as Windows ends them."""
    text = column
    if source.format == "TSVRaw":
        text = f"replaceRegexpOne({column}, '\\r$', '')"
        parts = f"extractAll(assumeNotNull({text}), '\\\\\\\\.|[^\\\\\\\\]+')"
        known = ", ".join(sql.text(f"\\{sign}") for sign in "ntrbf0'\\")
        meant = ", ".join(sql.text(sign) for sign in "\n\t\r\b\f\0'\\")
        told = f"arrayStringConcat(arrayMap(part -> transform(part, [{known}], [{meant}], part), {parts}))"
        text = f"multiIf(isNull({column}), NULL, {text} = '\\\\N' OR position({text}, '\\\\') = 0, {text}, {told})"
    return _decoded(text, options)


def _decoded(text: str, options: Options) -> str:
    encoding = ENCODINGS[options.encoding]
    return f"convertCharset({text}, '{encoding}', 'UTF-8')" if encoding else text


async def _stage_named(client: DataClient, source: Source, schema: Schema, options: Options, staged: str) -> Cells:
    """Values by their names, as texts: JSON's numbers keep all their digits."""
    structure = ", ".join(f"{sql.name(name)} Nullable(String)" for name in schema.names)
    query = f"SELECT rowNumberInAllBlocks() + 1 AS row, * FROM {source.table(structure, options)}"  # noqa: S608 (quoted)
    settings = {"input_format_skip_unknown_fields": 1, "input_format_json_read_numbers_as_strings": 1, **IN_ORDER}
    settings["input_format_json_validate_types_from_metadata"] = 0
    await _make(client, source, staged, query, {**settings, "precise_float_parsing": 1})
    fields = []
    for field in schema.fields:
        column = sql.name(field.name)
        fields.append(
            _text_cell(field.name, parse(field.type), f"assumeNotNull({column})", f"isNull({column})", options)
        )
    return Cells(staged, "''", fields)


def _text_cell(name: str, kind: Type, text: str, null: str, options: Options) -> Cell:
    found = reading(kind.bare, text, options)
    if found is None:
        rule = f"a {kind.bare.name} is not read from texts"
        raise InputError(field=f"fields[{name!r}]", value=str(kind), rule=rule, hint="Read it as a String.")
    is_null = "''" if kind.is_nullable else "'it is empty or NULL, and the column is not Nullable'"
    reason = f"multiIf({null}, {is_null}, {found.fits}, '', {sql.text(f'it is no {kind.bare}')})"
    value = f"if({null}, NULL, {found.value})"
    return Cell(name, kind, f"if({null}, NULL, toValidUTF8({text}))", reason, value)


async def _stage_typed(client: DataClient, source: Source, schema: Schema, options: Options, staged: str) -> Cells:
    """Columns that have types of their own: what comes back the same from the other type has fitted."""
    table = source.table("", options)
    try:
        described = await client.rows(f"DESCRIBE TABLE {table}")
    except DataRefused as error:
        raise _unreadable(source, error) from error
    kinds = dict(zip(*described.columns[:2], strict=True))
    _check_header(source, list(kinds), schema)
    wanted = ", ".join(map(sql.name, schema.names))
    query = f"SELECT rowNumberInAllBlocks() + 1 AS row, {wanted} FROM {table}"  # noqa: S608 (quoted)
    await _make(client, source, staged, query, IN_ORDER)
    fields = [_typed_cell(field.name, parse(field.type), kinds[field.name], options) for field in schema.fields]
    return Cells(staged, "''", fields)


def _typed_cell(name: str, kind: Type, given: str, options: Options) -> Cell:
    column, source = sql.name(name), parse(given).bare
    null = f"isNull({column})"
    if source.name == "String" and kind.bare.name != "String":
        return _text_cell(name, kind, f"assumeNotNull({column})", null, options)
    bare, there = str(kind.bare), f"assumeNotNull({column})"
    value, fits = f"accurateCastOrNull({there}, {sql.text(bare)})", "1"
    if str(source) == bare:
        fits = f"isValidUTF8({there})" if bare == "String" else "1"
        value = column
    elif kind.bare.parts or source.parts:
        rule = f"the file has {source}, which is not changed into another type"
        raise InputError(field=f"fields[{name!r}]", value=bare, rule=rule, hint="")
    else:
        same = f"ifNull(accurateCastOrNull({value}, {sql.text(str(source))}) = {there}, 0)"
        value = f"if({null}, NULL, {value})"
        fits = f"({same} OR {there} != {there})" if source.name.startswith("Float") else same
    is_null = "''" if kind.is_nullable else "'it is NULL, and the column is not Nullable'"
    reason = f"multiIf({null}, {is_null}, {fits}, '', {sql.text(f'it is no {bare}')})"
    shown_as = f"if({null}, NULL, toValidUTF8(toString({there})))"
    return Cell(name, kind, shown_as, reason, value)


# ---------------------------------------------------------------- statements


async def _make(client: DataClient, source: Source, table: str, query: str, settings: Mapping[str, Any]) -> None:
    mark = new_mark()
    creation = f"CREATE TABLE {sql.name(table)} ENGINE = MergeTree ORDER BY row COMMENT {sql.text(mark)} AS {query}"
    try:
        await make_anew(client, table, mark, lambda: client.command(creation, settings))
    except DataRefused as error:
        raise _unreadable(source, error) from error


def _shortened(cause: str) -> str:
    """The first of what ClickHouse says, which names the row."""
    return cause if len(cause) <= CAUSE_MAX else f"{cause[:CAUSE_MAX]}…"


def _unreadable(source: Source, error: DataRefused) -> InputError:
    rule = f"ClickHouse cannot read it as {source.given}: {_shortened(str(error.facts['cause']))}"
    return InputError(field="file", value=source.name, rule=rule, hint="Is its format another one?")


async def _refuse_first(client: DataClient, source: Source, cells: Cells, *, only_strict: bool) -> None:
    """Refuse the file by its first value that cannot be read."""
    wrong = cells.first_wrong(only_strict)
    shown_texts = ", ".join(["NULL", *(cell.shown for cell in cells.fields)])
    found = await client.rows(
        f"SELECT row, {wrong} AS which, ({cells.reasons})[which], ([{shown_texts}]::Array(Nullable(String)))[which]"  # noqa: S608 (quoted)
        f" FROM {sql.name(cells.table)} WHERE row > 0 AND which > 0 ORDER BY row LIMIT 1"
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


async def _take(client: DataClient, made: Object, cells: Cells, on_error: str) -> None:
    """Insert the rows that are right."""
    values = []
    for cell in cells.fields:
        value = f"if({cell.reason} = '', {cell.value}, NULL)" if on_error == "null" else cell.value
        values.append(value if cell.kind.is_nullable else f"assumeNotNull({value})")
    where = "row > 0" + ("" if on_error in ("refuse", "null") else f" AND {cells.first_wrong(False)} = 0")
    columns = ", ".join(sql.name(cell.name) for cell in cells.fields)
    await client.command(
        f"INSERT INTO {sql.name(made.table)} ({columns}) SELECT {', '.join(values)} FROM {sql.name(cells.table)}"  # noqa: S608 (quoted)
        f" WHERE {where} ORDER BY row",
        {**IN_ORDER, "precise_float_parsing": 1},
    )


async def _collect(context: Context, cells: Cells) -> Object:
    """The rows that are wrong, with the first reason."""
    rejected = await context.create_object(REJECTED)
    texts = ", ".join(cell.shown for cell in cells.fields)
    names = ", ".join(["''", *(sql.text(cell.name) for cell in cells.fields)])
    columns = ", ".join(map(sql.name, REJECTED))
    await context.client.command(
        f"INSERT INTO {sql.name(rejected.table)} ({columns}) SELECT row, [{names}][which],"  # noqa: S608 (quoted)
        f" ([NULL, {texts}]::Array(Nullable(String)))[which], ({cells.reasons})[which],"
        f" [{texts}]::Array(Nullable(String)) FROM (SELECT *, {cells.first_wrong(False)} AS which"
        f" FROM {sql.name(cells.table)} WHERE row > 0) WHERE which > 0 ORDER BY row",
        IN_ORDER,
    )
    return rejected
