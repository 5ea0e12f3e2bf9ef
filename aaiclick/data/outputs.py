"""What functions return for rows, as columns of a table: of one part of the rows, whose types the other parts share.

A column of nothing but None is no error here: it is left untyped, for the other parts to say.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data.grammar import Type, nullable
from aaiclick.data.parts import Part, united
from aaiclick.data.schema import VALUE, Schema
from aaiclick.data.spreading import spread
from aaiclick.data.types import arrow_of, read_kind
from aaiclick.data.values import conform, tabulate

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.data.context import Context

UNTYPED = "Nullable(UInt8)"
"""What an untyped column is stored as."""

Fields = Mapping[str, str]
WHOLE = {VALUE: "Int64"}


class Output(NamedTuple):
    """Columns ready to be inserted."""

    schema: Schema
    data: pa.Table
    untyped: Sequence[str] = ()


def output_of_values(values: list[Any], fields: Fields) -> Output:
    """One value for each row: single ones make the column `value`, dicts make columns by their names."""
    if fields == WHOLE and (numbers := _whole_numbers(values)) is not None:
        return _of_column(numbers, "Int64")
    kinds = set(map(type, values))
    if kinds == {NoneType} and not fields:
        return _of_tabular(values, {VALUE: UNTYPED}, [VALUE])
    return _at_once(values, kinds, fields) or output_of_table(values, fields)


def _whole_numbers(values: list[Any]) -> pa.Array | None:
    """The quickest way to Arrow; None if there is anything but whole numbers of 64 bits."""
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
    """A column of values of one plain type, which Arrow takes as they are; None if it is not that simple."""
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
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):  # told, or done, the slower way
        return None
    return _of_column(column, str(wanted))


_PLAIN = {bool: "Bool", int: "Int64", float: "Float64", str: "String"}


def output_of_table(value: Any, fields: Fields) -> Output:
    """Many rows at once: a table of Arrow, pandas or polars, a dict of lists, a list of dicts."""
    found = spread(value).columns
    untyped = [name for name, column in found.items() if name not in fields and _is_void(column)]
    return _of_tabular(value, {**fields, **dict.fromkeys(untyped, UNTYPED)}, untyped)


def _of_tabular(value: Any, fields: Fields, untyped: Sequence[str]) -> Output:
    schema, data = tabulate(value, fields)
    return Output(Schema(schema.fields, "list" if schema.names == [VALUE] else "table"), data, untyped)


def _is_void(column: Any) -> bool:
    """Whether a column holds nothing but nulls, and at least one."""
    if isinstance(column, list):
        return set(map(type, column)) == {NoneType}
    return str(column.type) == "null"


async def store(context: Context, outputs: Sequence[Output]) -> Part:
    """A table with all of these, one after the other."""
    import pyarrow as pa  # here, to keep start-up light

    first = outputs[0]
    if len(outputs) == 1:
        schema, data, untyped = first
    else:
        untyped = [name for name in first.untyped if all(name in each.untyped for each in outputs)]
        schema = united([(each.schema, [*({*each.untyped} - {*untyped})]) for each in outputs])
        data = pa.concat_tables([conform(each.data, schema) for each in outputs])
    made = await context.create_object(schema)
    if data.num_rows:
        await context.client.insert(made.table, data)
    return Part(made, untyped)
