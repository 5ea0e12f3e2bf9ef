"""Stores the cells of a file unchanged in a table of their own, so that the first bad one can be named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.clocks import check_alike
from aaiclick.data.files.file_reader import FileSource
from aaiclick.data.files.file_types import described, structure_of, unreadable
from aaiclick.data.parsing.file_options import ENCODINGS, Options, cell_settings
from aaiclick.data.parsing.text_values import reading
from aaiclick.data.sql import quoting
from aaiclick.data.tables.lifetimes import make_anew, new_mark
from aaiclick.data.typing.grammar import Type, parse
from aaiclick.data.typing.schema import Field, Schema
from aaiclick.errors import DataRefused, InputError
from aaiclick.urls import did_you_mean, shown

if TYPE_CHECKING:
    from aaiclick.data.clients.contract import DataClient
from aaiclick.data.clients.tables import NewTable

CELLS = {"CSV": "CSV", "TSV": "TSVRaw", "TabSeparated": "TSVRaw"}
NAMED = ("JSONEachRow", "JSONLines", "NDJSON", "JSON")
WIDTHS = (50, 1_000, 10_000)
"""The numbers of columns that are tried, one after the other, to read the first row."""

IN_ORDER = {"max_threads": 1, "max_insert_threads": 1, "max_block_size": 65_409}
FEW, MANY = "the row has too few columns", "the row has too many columns"


class Cell(NamedTuple):
    """A field of an Object, and SQL over its cell: the text shown in errors, why it is bad ('' if good), its value."""

    name: str
    kind: Type
    shown: str
    reason: str
    value: str


class Cells(NamedTuple):
    """A table of cells, SQL that tells what is wrong with a row as a whole ('' if nothing), and its fields."""

    table: str
    wrong_row: str
    fields: list[Cell]

    @property
    def reasons(self) -> str:
        return f"[{', '.join([self.wrong_row, *(cell.reason for cell in self.fields)])}]"

    def first_wrong(self, only_strict: bool) -> str:
        """Return SQL of the index (from 1) of the first reason that is not empty; 0 if the row is good.

        With `only_strict`, bad values of Nullable fields do not count.
        """
        reasons = [self.wrong_row] + [
            "''" if only_strict and cell.kind.is_nullable else cell.reason for cell in self.fields
        ]
        return f"arrayFirstIndex(reason -> reason != '', [{', '.join(reasons)}])"


def has_types(source: FileSource) -> bool:
    """Return whether the format of a file has column types, unlike CSV, TSV and JSON."""
    return not is_of_cells(source) and source.format not in NAMED


async def names_of(client: DataClient, source: FileSource, options: Options, usual: Sequence[str]) -> list[str]:
    """Return the names of a source's columns; `usual` if the file has none."""
    if not is_of_cells(source):
        return list(await described(client, source, options))
    if not options.has_header(source.given):
        return list(usual)
    cells = source.of(CELLS[source.format.removesuffix("WithNames")])
    return await _header(client, cells, options, {**cell_settings(options), **IN_ORDER})


async def stage(client: DataClient, source: FileSource, schema: Schema, options: Options, staged: str) -> Cells:
    """Store the cells of a source in the table `staged`, to be read as the fields of a schema."""
    if is_of_cells(source):
        return await _stage_cells(client, source, schema, options, staged)
    if source.format in NAMED:
        return await _stage_named(client, source, schema, options, staged)
    return await _stage_typed(client, source, schema, options, staged)


async def _stage_cells(client: DataClient, source: FileSource, schema: Schema, options: Options, staged: str) -> Cells:
    names = await stage_texts(client, source, options, staged, schema)
    fields = []
    for field in schema.fields:
        kind = parse(field.type)
        text = cell(names.index(field.name))
        null = null_cell(text, options, is_text=kind.bare.name in ("String", "FixedString"))
        fields.append(text_cell(field.name, kind, text, null, options))
    return Cells(staged, wrong_width(len(names)), fields)


def is_of_cells(source: FileSource) -> bool:
    """Return whether the file is CSV or TSV, whose cells are told apart by position."""
    return source.format.removesuffix("WithNames") in CELLS


async def stage_texts(
    client: DataClient, given: FileSource, options: Options, staged: str, schema: Schema | None = None
) -> list[str]:
    """Store cells as the columns c1, c2 … of a table, and return their names; a cell that a row lacks is NULL.

    Without a header, the names are those of the schema, or c1, c2 …
    """
    source = given.of(CELLS[given.format.removesuffix("WithNames")])
    settings = {**cell_settings(options), **IN_ORDER}
    has_header = options.has_header(source.given)
    await _refuse_open_quote(client, source, options)
    if has_header or schema is None:
        names = await _header(client, source, options, settings)
        names = names if has_header else [f"c{place}" for place in range(1, len(names) + 1)]
    else:
        names = schema.names
    if has_header and schema is not None:
        _check_header(source, names, schema)
    count, first = len(names), int(has_header)
    places = ", ".join(f"c{place} Nullable(String)" for place in range(1, count + 2))
    cleaned = ", ".join(f"{_clean(f's.c{place}', source, options)} AS c{place}" for place in range(1, count + 2))
    query = f"SELECT rowNumberInAllBlocks() + {1 - first} AS row, {cleaned} FROM {source.table(places, options)} AS s"  # noqa: S608 (quoted)
    await _make(client, source, staged, query, settings)
    if (
        has_header
        and source.format == "CSV"
        and await _first_row(client, source, quoting.name(staged), count + 1, options, {}) != names
    ):
        raise InputError(field="file", value=source.name, rule="it changed while it was read", hint="Read it again.")
    return names


async def stage_content(client: DataClient, table: str, content: bytes) -> str:
    """Store the content of a file as the one row of a table, and return a query that gives it."""
    import pyarrow as pa  # here, to keep start-up light

    mark = new_mark()
    new = NewTable(table, "tuple()", mark, "content String", ("content",))
    await make_anew(client, table, mark, lambda: client.tables.make(client, new))
    await client.insert(table, pa.table({"content": pa.array([content], pa.binary())}))
    return f"SELECT content FROM {quoting.name(table)}"  # noqa: S608 (quoted)


def cell(number: int) -> str:
    """Return SQL of the text of a cell, by its position from 0."""
    return f"assumeNotNull(c{number + 1})"


def null_cell(text: str, options: Options, *, is_text: bool) -> str:
    """Return SQL: whether a cell means NULL. An empty cell does, unless the column is a text."""
    null = f"{text} = {quoting.text(options.null)}"
    return null if is_text else f"({null} OR trimBoth({text}) = '')"


def wrong_width(count: int) -> str:
    """Return SQL of the reason why a row with more or fewer cells is bad; '' if it has `count` cells."""
    return f"multiIf(isNotNull(c{count + 1}), '{MANY}', isNull(c{count}), '{FEW}', '')"


async def _header(client: DataClient, source: FileSource, options: Options, settings: Mapping[str, Any]) -> list[str]:
    one = {**settings, "max_block_size": 1, "input_format_parallel_parsing": 0}
    for width in WIDTHS:
        places = ", ".join(f"c{place} Nullable(String)" for place in range(1, width + 1))
        names = await _first_row(client, source, source.table(places, options), width, options, one)
        if names is None:
            rule = "the file is empty: it has no row with the names of the columns"
            raise InputError(field="file", value=source.name, rule=rule, hint="Give options={'header': False}.")
        if len(names) < width:
            return names
    rule = f"its first row has more than {WIDTHS[-1]} columns"
    raise InputError(field="file", value=source.name, rule=rule, hint="")


async def _first_row(
    client: DataClient, source: FileSource, table: str, width: int, options: Options, settings: Mapping[str, Any]
) -> list[str] | None:
    """Return the texts of the first row, without cells that it lacks; None if there is no row."""
    texts = ", ".join(_decoded(f"c{place}", options) if settings else f"c{place}" for place in range(1, width + 1))
    first = "" if settings else " WHERE row = 0"
    query = f"SELECT [{texts}] AS header FROM {table}{first} LIMIT 1"  # noqa: S608 (quoted)
    try:
        found = (await client.rows(query, settings)).columns[0]
    except DataRefused as error:
        raise unreadable(source, error) from error
    if not len(found):
        return None
    return [str(text).removeprefix("\ufeff").rstrip("\r") for text in found[0] if text is not None]


async def _refuse_open_quote(client: DataClient, source: FileSource, options: Options) -> None:
    """Raise InputError for an unclosed quote: ClickHouse would read the rest of the file as one cell."""
    if source.format != "CSV":
        return
    lines = source.of("LineAsString").table("line String", options)
    try:
        found = await client.rows(f"SELECT sum(countSubstrings(line, '\"')) % 2 FROM {lines}")  # noqa: S608 (quoted)
    except DataRefused as error:
        raise unreadable(source, error) from error
    if found.columns[0][0]:
        rule = 'the file has an odd number of ": one of them is not closed'
        raise InputError(field="file", value=source.name, rule=rule, hint='Write a " inside a cell as "".')


def _check_header(source: FileSource, names: Sequence[str], schema: Schema) -> None:
    for name in schema.names:
        if names.count(name) != 1:
            there = ", ".join(names)[:300]
            rule = (
                f"there are {names.count(name)} columns of that name" if name in names else f"its columns are {there}"
            )
            where = f"{source.name}, column {shown(name)}"
            raise InputError(field="fields", value=where, rule=rule, hint=did_you_mean(name, names))


def _clean(column: str, source: FileSource, options: Options) -> str:
    """Return SQL of the text of a cell. In TSV, backslash escapes are resolved and a trailing \\r is removed."""
    text = column
    if source.format == "TSVRaw":
        text = f"replaceRegexpOne({column}, '\\r$', '')"
        parts = f"extractAll(assumeNotNull({text}), '\\\\\\\\.|[^\\\\\\\\]+')"
        known = ", ".join(quoting.text(f"\\{sign}") for sign in "ntrbf0'\\")
        meant = ", ".join(quoting.text(sign) for sign in "\n\t\r\b\f\0'\\")
        told = f"arrayStringConcat(arrayMap(part -> transform(part, [{known}], [{meant}], part), {parts}))"
        text = f"multiIf(isNull({column}), NULL, {text} = '\\\\N' OR position({text}, '\\\\') = 0, {text}, {told})"
    return _decoded(text, options)


def _decoded(text: str, options: Options) -> str:
    encoding = ENCODINGS[options.encoding]
    return f"convertCharset({text}, '{encoding}', 'UTF-8')" if encoding else text


async def _stage_named(client: DataClient, source: FileSource, schema: Schema, options: Options, staged: str) -> Cells:
    await stage_named(client, source, dict.fromkeys(schema.names, "Nullable(String)"), options, staged)
    fields = []
    for number, field in enumerate(schema.fields):
        value = named(number)
        fields.append(text_cell(field.name, parse(field.type), f"assumeNotNull({value})", f"isNull({value})", options))
    return Cells(staged, "''", fields)


async def stage_named(
    client: DataClient, source: FileSource, kinds: Mapping[str, str], options: Options, staged: str
) -> None:
    """Store the values of these columns as v1, v2 …; numbers of JSON that are read as texts keep all their digits."""
    settings = {"input_format_skip_unknown_fields": 1, "input_format_json_read_numbers_as_strings": 1, **IN_ORDER}
    settings["input_format_json_validate_types_from_metadata"] = 0
    table = source.table(structure_of(kinds), options)
    await _make(client, source, staged, _numbered(table, list(kinds)), {**settings, "precise_float_parsing": 1})


def named(number: int) -> str:
    """Return the name of a column in the staged table, by position from 0; names in the file may be anything."""
    return f"v{number + 1}"


def _numbered(table: str, names: Sequence[str]) -> str:
    columns = "".join(f", s.{quoting.name(name)} AS {named(number)}" for number, name in enumerate(names))
    return f"SELECT rowNumberInAllBlocks() + 1 AS row{columns} FROM {table} AS s"  # noqa: S608 (quoted)


def text_cell(name: str, kind: Type, text: str, null: str, options: Options) -> Cell:
    found = reading(kind.bare, text, options)
    if found is None:
        rule = f"{kind.bare.name} cannot be read from texts"
        raise InputError(field=f"fields[{name!r}]", value=str(kind), rule=rule, hint="Read the column as a String.")
    is_null = "''" if kind.is_nullable else "'it is empty or NULL, and the column is not Nullable'"
    reason = f"multiIf({null}, {is_null}, {found.fits}, '', {quoting.text(f'it is not a valid {kind.bare}')})"
    value = f"if({null}, NULL, {found.value})"
    return Cell(name, kind, f"if({null}, NULL, toValidUTF8({text}))", reason, value)


async def _stage_typed(client: DataClient, source: FileSource, schema: Schema, options: Options, staged: str) -> Cells:
    """Stage columns that have types. A value fits a field if it is unchanged after a cast there and back."""
    kinds = await described(client, source, options)
    _check_header(source, list(kinds), schema)
    table = source.table(structure_of(kinds), options)
    await _make(client, source, staged, _numbered(table, schema.names), IN_ORDER)
    fields = [_typed_cell(number, field, kinds[field.name], options) for number, field in enumerate(schema.fields)]
    return Cells(staged, "''", fields)


def _typed_cell(number: int, field: Field, given: str, options: Options) -> Cell:
    name, kind = field.name, parse(field.type)
    column, source = named(number), parse(given).bare
    null = f"isNull({column})"
    if source.name == "String" and kind.bare.name != "String":
        return text_cell(name, kind, f"assumeNotNull({column})", null, options)
    check_alike(f"fields[{name!r}]", source.clock, kind.clock)
    bare, there = str(kind.bare), f"assumeNotNull({column})"
    value, fits = f"accurateCastOrNull({there}, {quoting.text(bare)})", "1"
    if str(source) == bare:
        fits = f"isValidUTF8({there})" if bare == "String" else "1"
        value = column
    elif kind.bare.parts or source.parts:
        rule = f"the file has {source}, which is not changed into another type"
        raise InputError(field=f"fields[{name!r}]", value=bare, rule=rule, hint="")
    else:
        same = f"ifNull(accurateCastOrNull({value}, {quoting.text(str(source))}) = {there}, 0)"
        value = f"if({null}, NULL, {value})"
        fits = f"({same} OR {there} != {there})" if source.name.startswith("Float") else same
    is_null = "''" if kind.is_nullable else "'it is NULL, and the column is not Nullable'"
    reason = f"multiIf({null}, {is_null}, {fits}, '', {quoting.text(f'it is not a valid {bare}')})"
    shown_as = f"if({null}, NULL, toValidUTF8(toString({there})))"
    return Cell(name, kind, shown_as, reason, value)


async def _make(client: DataClient, source: FileSource, table: str, query: str, settings: Mapping[str, Any]) -> None:
    mark = new_mark()
    new = NewTable(table, "row", mark)
    try:
        await make_anew(client, table, mark, lambda: client.tables.make(client, new, query, settings))
    except DataRefused as error:
        raise unreadable(source, error) from error
