"""Parts of rows for operators: a numbered copy is cut into ranges, and the tables of the parts are joined into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.compiling.select_sql import to_sql
from aaiclick.data.frames import Frame
from aaiclick.data.objects import Object
from aaiclick.data.provenance.column_sources import by_name
from aaiclick.data.query.expressions import Value
from aaiclick.data.query.relations import Project, free_prefix, own_columns
from aaiclick.data.query.row_order import in_order
from aaiclick.data.sql import quoting
from aaiclick.data.typing.common_types import NOTHING, common_type
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.schema import VALUE, Field, Schema, Shape
from aaiclick.data.typing.types import read_kind
from aaiclick.data.typing.undetermined_types import (
    ALL_TYPED,
    ONLY_NONE,
    Untyped,
    is_unknown,
    known_as,
    read_unknown,
    stored_kind,
)
from aaiclick.data.views import View
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    from aaiclick.data.context import Context

GRANULE_MAX = 8192
"""ClickHouse's default granule, the fewest rows it reads at once. Smaller parts get smaller granules."""

ATTACHED_MAX = 300
"""Up to this many tables are attached, more are copied: each attached one stays a part until ClickHouse merges it."""

COPIED_AT_ONCE = 100
ONE_THREAD = {"max_threads": 1, "max_insert_threads": 1}
TYPES_SHOWN = 8


# ---------------------------------------------------------------- cutting


@dataclass(frozen=True)
class Numbered:
    """An unchanging copy of rows, numbered from 0 in the column `key`."""

    copy: Object
    key: str
    count: int
    shape: Shape
    """The shape of the rows' value; that of a single value is a list of one."""
    size_bytes: int = 0
    """About how much memory the copy takes: its size in bytes before compression."""

    @property
    def names(self) -> list[str]:
        """The columns of the original rows, without the number."""
        return [name for name in self.copy.columns if name != self.key]

    @property
    def schema(self) -> Schema:
        """The schema of the original rows, without the number."""
        return Schema(tuple(field for field in self.copy.schema.fields if field.name != self.key), self.shape)

    def part(self, start: int, stop: int) -> View:
        """Return the rows numbered from `start` to before `stop`, in order."""
        return cut(self.copy, self.key, start, stop, self.names)

    @property
    def nothing(self) -> View:
        """A view of no rows; a table made of it has the columns of the rows, of whatever types."""
        return shaped(self.part(0, 0), self.shape)


async def number_rows(frame: Frame, part_rows: int | None = None) -> Numbered:
    """Copy the rows as they are now, to be read in parts of about `part_rows` rows.

    One thread numbers the rows in the order in which they are read.
    """
    context, relation, key = frame._context, in_order(frame._relation), f"{free_prefix(frame.columns)}row"
    table, keeper = await context._table(None, "global")
    names = ", ".join(map(quoting.name, relation.names))
    query = f"SELECT toUInt64(rowNumberInAllBlocks()) AS {quoting.name(key)}, {names} FROM ({to_sql(relation)})"  # noqa: S608 (quoted, and compiled)
    granule = min(GRANULE_MAX, part_rows or GRANULE_MAX)
    schema = Schema((Field(key, "UInt64"),), "table")
    schema = await context._create_as(table, schema, query, ONE_THREAD, granule)
    numbered = Project(frame._relation, {key: Value(0), **own_columns(frame._relation)})
    await context.note("number", table, numbered, query)
    copy = Object(context, table, schema, keeper)
    shape: Shape = "list" if frame.shape in ("scalar", "list") and frame.columns == (VALUE,) else "table"
    count, size = await _measured(copy)
    return Numbered(copy, key, count, shape, size)


async def _measured(copy: Object) -> tuple[int, int]:
    """Return the number of rows, and about how much memory they take, by one statement.

    Uses `system.tables`, which every user of a server may read; `system.parts` would need a grant.
    """
    client = copy._context.client
    size = f"SELECT max(total_bytes_uncompressed) FROM {client.tables.sizes} AND name = {quoting.text(copy.table)}"  # noqa: S608 (quoted)
    found = await client.rows(f"SELECT count(), ifNull(({size}), 0) FROM {quoting.name(copy.table)}")  # noqa: S608 (quoted)
    return int(found.columns[0][0]), int(found.columns[1][0])


def cut(rows: Object | View, key: str, start: int, stop: int, names: Sequence[str]) -> View:
    """Return the rows numbered from `start` to before `stop`, in order, with these columns."""
    number = quoting.name(key)
    seen = rows.where(f"{number} >= {start} AND {number} < {stop}").order_by(key)[list(names)]
    assert isinstance(seen, View)
    return seen


def shaped(rows: View, shape: Shape) -> View:
    """Return the same rows in another shape: a single column is a list, or a table of one column."""
    return View(rows._context, rows._table, rows._window, shape, rows._rows)


async def chosen(rows: View, key: str, numbers: Any) -> Object:
    """Make an Object of the rows with these numbers (an Arrow array). The rows do not pass through Python."""
    context = rows._context
    wanted = await context.create_object_from_value(numbers, fields={VALUE: "UInt64"})
    return await rows.where(f"{quoting.name(key)} IN (SELECT {VALUE} FROM {quoting.name(wanted.table)})").materialize()  # noqa: S608 (quoted, and compiled)


# ---------------------------------------------------------------- joining


class Part(NamedTuple):
    """The rows that one task made. An untyped column takes any type that its values could have."""

    rows: Object
    untyped: Untyped = ALL_TYPED


def united(schemas: Sequence[tuple[Schema, Untyped]]) -> Schema:
    """Return a schema that holds the rows of all parts; raise InputError if none does, or a column stays untyped."""
    schema, untyped = united_so_far(schemas)
    for name, kind in untyped.items():
        what = "None" if read_unknown(kind) == ONLY_NONE else "what is empty"
        rule = f"the type of a column with nothing but {what} is unknown"
        hint = f'Give it: fields={{"{shown(name)}": "{kind.replace(NOTHING.name, "…")}"}}.'
        raise InputError(field=f"column {shown(name)}", value=_told(kind), rule=rule, hint=hint)
    return schema


def united_so_far(schemas: Sequence[tuple[Schema, Untyped]]) -> tuple[Schema, Untyped]:
    """Return a schema that holds the rows of all these parts, and the columns whose type none of them tells."""
    shapes = {schema.shape for schema, _ in schemas}
    if len(shapes) > 1 and shapes & {"list", "scalar"}:
        rule, hint = (
            "some parts have single values, others have rows with names",
            "Return one kind of value from the callback.",
        )
        raise InputError(field="parts", value=", ".join(sorted(shapes)), rule=rule, hint=hint)
    names = dict.fromkeys(name for schema, _ in schemas for name in schema.names)
    types = {name: _united_type(name, schemas) for name in names}
    untyped = {name: kind for name, kind in types.items() if isinstance(kind, Type)}
    fields = tuple(
        Field(name, str(stored_kind(kind)) if isinstance(kind, Type) else kind) for name, kind in types.items()
    )
    return Schema(fields, "list" if shapes == {"list"} else "table"), {name: str(untyped[name]) for name in untyped}


def _united_type(name: str, schemas: Sequence[tuple[Schema, Untyped]]) -> str | Type:
    """Return the common type of a column: a text, or a parsed Type if it is not fully known."""
    found = [untyped.get(name) or _type_in(schema, name) for schema, untyped in schemas]
    told = list(dict.fromkeys(found))
    if len(told) == 1 and not any(name in untyped for _, untyped in schemas):
        return told[0]  # even a type that is not known here
    open_ones = {str(ONLY_NONE), *(untyped[name] for _, untyped in schemas if name in untyped)}
    kind = common_type(read_unknown(each) if each in open_ones else read_kind(each) for each in told)
    if kind is not None:
        return kind if is_unknown(kind) else str(kind)
    value = ", ".join([*map(_told, told[:TYPES_SHOWN]), *["…"] * (len(told) > TYPES_SHOWN)])
    rule, hint = "no type holds the values of all parts", "Give the type with fields=…, or return values of one type."
    raise InputError(field=f"column {shown(name)}", value=value, rule=rule, hint=hint)


def _type_in(schema: Schema, name: str) -> str:
    """Return the type of a column in a schema; rows without the column have None there."""
    return schema[name].type if name in schema else str(ONLY_NONE)


def _told(kind: str) -> str:
    return "None" if kind == str(ONLY_NONE) else kind.replace(NOTHING.name, "…")


async def join_parts(context: Context, parts: Sequence[Part], schema: Schema | None = None) -> Object:
    """Make an Object with the rows of all parts, in their order. The parts stay; no row passes through Python."""
    wanted = schema or united([(part.rows.schema, part.untyped) for part in parts])
    return await fill(await context.create_object(wanted), parts)


async def fill(made: Object, parts: Sequence[Part]) -> Object:
    """Fill an existing, empty table with the rows of all parts, in their order.

    Where columns and types are the same, the files of a part are shared, not copied.
    """
    context, wanted = made._context, made.schema
    few = len(parts) <= ATTACHED_MAX and context.client.tables.shares_pieces
    waiting: list[Part] = []
    for part in parts:
        if few and not part.untyped and _is_same(part.rows.schema, wanted):
            await _copy(context, made, waiting)
            waiting = []
            await context.client.command(
                f"ALTER TABLE {quoting.name(made.table)} ATTACH PARTITION ALL FROM {_name(part)}"
            )
        else:
            waiting.append(part)
    await _copy(context, made, waiting)
    columns = by_name({part.rows.table: part.rows.schema.names for part in parts})
    await context.note("join", made.table, [part.rows.table for part in parts], columns=columns)
    return made


def _is_same(schema: Schema, wanted: Schema) -> bool:
    def columns(of: Schema) -> list[tuple[str, str]]:
        return [(field.name, field.type) for field in of.fields]

    return not schema.ordered and columns(schema) == columns(wanted)


async def _copy(context: Context, made: Object, parts: Sequence[Part]) -> None:
    """Insert the rows of parts in order: one thread reads one part after the other."""
    names = ", ".join(map(quoting.name, made.schema.names))
    for some in _several(parts, COPIED_AT_ONCE):
        query = " UNION ALL ".join(f"SELECT {_columns(part, made.schema)} FROM {_name(part)}" for part in some)  # noqa: S608 (quoted, and compiled)
        statement = f"INSERT INTO {quoting.name(made.table)} ({names}) {query}"
        await context.client.command(statement, ONE_THREAD)


def _several(parts: Sequence[Part], count: int) -> Iterator[Sequence[Part]]:
    return (parts[start : start + count] for start in range(0, len(parts), count))


def _columns(part: Part, wanted: Schema) -> str:
    return ", ".join(_column(part, field) for field in wanted.fields)


def _column(part: Part, field: Field) -> str:
    name, schema = quoting.name(field.name), part.rows.schema
    if field.name in part.untyped or field.name not in schema:
        kind = read_unknown(part.untyped.get(field.name, str(ONLY_NONE)))
        return f"{known_as(name, kind, read_kind(field.type))} AS {name}"
    if schema[field.name].type == field.type:
        return name
    return f"accurateCast({name}, {quoting.text(field.type)}) AS {name}"


def _name(part: Part) -> str:
    return quoting.name(part.rows.table)
