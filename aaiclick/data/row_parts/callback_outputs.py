"""Turns what callbacks return for the rows of one part into columns of a table; all parts share the columns' types.

A column of nothing but None, or of empty lists, is left untyped here: the other parts decide its type.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.display import glimpse
from aaiclick.data.row_parts.parts import Part, united_so_far
from aaiclick.data.typing.arrow_columns import build
from aaiclick.data.typing.grammar import Type, nullable
from aaiclick.data.typing.named_columns import spread
from aaiclick.data.typing.schema import VALUE, Schema
from aaiclick.data.typing.tabulation import conform, tabulate
from aaiclick.data.typing.types import arrow_of, read_kind
from aaiclick.data.typing.undetermined_types import ALL_TYPED, ONLY_NONE, Untyped, stored_kind, unknown_kind
from aaiclick.errors import InputError
from aaiclick.urls import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.data.context import Context

Fields = Mapping[str, str]
WHOLE = {VALUE: "Int64"}


class Output(NamedTuple):
    """Columns ready to be inserted, with their schema and the columns whose type is still open."""

    schema: Schema
    data: pa.Table
    untyped: Untyped = ALL_TYPED


def output_of_values(values: list[Any], fields: Fields) -> Output:
    """Return the output for one value per row: plain values make the column `value`, dicts make columns by key."""
    if fields == WHOLE and (numbers := _whole_numbers(values)) is not None:
        return _of_column(numbers, "Int64")
    kinds = set(map(type, values))
    if kinds == {NoneType} and not fields:
        return _of_tabular(values, {}, {VALUE: ONLY_NONE})
    return _at_once(values, kinds, fields) or output_of_table(values, fields)


def _whole_numbers(values: list[Any]) -> pa.Array | None:
    """Return the values as an Arrow array of 64-bit integers, by the fastest way; None if a value is something else."""
    import pyarrow as pa  # here, to keep start-up light

    try:
        numbers = array("q", values)
    except (TypeError, OverflowError):
        return None
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _of_column(column: pa.Array, kind: str) -> Output:
    import pyarrow as pa  # here, to keep start-up light

    return Output(Schema.from_fields({VALUE: kind}, "list"), pa.table([column], names=[VALUE]))


def _at_once(values: list[Any], kinds: set[type], fields: Fields) -> Output | None:
    """Return one column of values of a plain type, which Arrow converts by itself; None if it is not that simple."""
    import pyarrow as pa  # here, to keep start-up light

    found = kinds - {NoneType}
    name = _PLAIN.get(found.pop()) if len(found) == 1 else None
    if name is None or fields.keys() - {VALUE}:
        return None
    kind = Type(name) if NoneType not in kinds else nullable(Type(name))
    wanted = read_kind(fields[VALUE]) if fields else kind
    if wanted not in (kind, nullable(kind)):
        return None
    if kinds == {int} and (numbers := _whole_numbers(values)) is not None:
        return _of_column(numbers, str(wanted))
    try:
        column = pa.array(values, arrow_of(kind))
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):  # the slower way handles it or explains it
        return None
    return _of_column(column, str(wanted))


_PLAIN = {bool: "Bool", int: "Int64", float: "Float64", str: "String"}


def output_of_table(value: Any, fields: Fields) -> Output:
    """Return the output for many rows at once: a table of Arrow, pandas or polars, a dict of lists, a list of dicts."""
    found = spread(value).columns
    kinds = {name: kind for name, column in found.items() if name not in fields and (kind := _unknown(column))}
    made = _of_tabular(value, fields, kinds)
    for name, column in found.items():
        if isinstance(column, list) and _has_bytes(made.data[name].type):
            raise _bytes_refused(name, column)
    return made


def _of_tabular(value: Any, fields: Fields, untyped: Mapping[str, Type]) -> Output:
    schema, data = tabulate(value, {**fields, **{name: str(stored_kind(kind)) for name, kind in untyped.items()}})
    shaped = Schema(schema.fields, "list" if schema.names == [VALUE] else "table")
    return Output(shaped, data, {name: str(kind) for name, kind in untyped.items()})


def _unknown(column: Any) -> Type | None:
    """Return the open type of a column whose values do not fully determine it; None if they do."""
    if isinstance(column, list):
        return unknown_kind(column)
    return ONLY_NONE if str(column.type) == "null" else None


def _has_bytes(data_type: pa.DataType) -> bool:
    """Return whether an Arrow type contains bytes: a column of texts gets such a type if some values are bytes."""
    import pyarrow as pa  # here, to keep start-up light

    inner = (data_type.field(at).type for at in range(data_type.num_fields))
    return pa.types.is_binary(data_type) or any(map(_has_bytes, inner))


def _bytes_refused(name: str, column: list[Any]) -> InputError:
    """Return the error for bytes in a String column: they would be read back as a text."""
    row, value = next(((row, value) for row, value in enumerate(column) if _holds_bytes(value)), (0, column[0]))
    hint = 'Return a text. Bytes of one length come back as bytes where the type is given, such as "FixedString(16)".'
    return InputError(
        field=f"column {shown(name)}, row {row} (counted from 0)",
        value=glimpse(value),
        rule="ClickHouse would store bytes as a text",
        hint=hint,
    )


def _holds_bytes(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_bytes, (*value, *value.values())))
    return isinstance(value, bytes | bytearray | memoryview) or (
        isinstance(value, list | tuple) and any(map(_holds_bytes, value))
    )


async def store(context: Context, outputs: Sequence[Output], source: str | None = None) -> Part:
    """Store outputs in one new table, in their order. `source` is the table whose rows they were computed from."""
    import pyarrow as pa  # here, to keep start-up light

    first = outputs[0]
    if len(outputs) == 1:
        schema, data, untyped = first
    else:
        schema, untyped = united_so_far([(each.schema, each.untyped) for each in outputs])
        data = pa.concat_tables([conform(_told(each, schema), schema) for each in outputs])
    made = await context.create_object(schema)
    if data.num_rows:
        await context.client.insert(made.table, data)
    if source is not None:
        await context.note("map", made.table, [source])
    return Part(made, untyped)


def _told(output: Output, schema: Schema) -> dict[str, Any]:
    """Return the columns of an output; untyped ones get the type of the schema."""
    import pyarrow as pa  # here, to keep start-up light

    columns = dict(zip(output.data.column_names, output.data.columns, strict=True))
    for name in output.untyped:
        columns[name] = pa.chunked_array([build(columns[name].to_pylist(), read_kind(schema[name].type))])
    return columns
