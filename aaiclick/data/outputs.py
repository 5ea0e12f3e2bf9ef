"""What functions return for rows, as columns of a table: of one part of the rows, whose types the other parts share.

A column of nothing but None is no error here: it is left untyped, for the other parts to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.data import columns, inference
from aaiclick.data.grammar import Type
from aaiclick.data.parts import Part, united
from aaiclick.data.schema import VALUE, Schema
from aaiclick.data.spreading import spread
from aaiclick.data.types import read_kind
from aaiclick.data.values import conform, tabulate

if TYPE_CHECKING:
    import pyarrow as pa

    from aaiclick.data.context import Context

UNTYPED = "Nullable(UInt8)"
"""What an untyped column is stored as."""

Fields = Mapping[str, str]


class Output(NamedTuple):
    """Columns ready to be inserted."""

    schema: Schema
    data: pa.Table
    untyped: Sequence[str] = ()


def output_of_values(values: list[Any], fields: Fields) -> Output:
    """One value for each row: single ones make the column `value`, dicts make columns by their names."""
    kinds = set(map(type, values))
    if kinds == {NoneType} and not fields:
        return _of_tabular(values, {VALUE: UNTYPED}, [VALUE])
    if kinds <= _SINGLE and (not fields or list(fields) == [VALUE]) and (quick := _quick(values, fields)) is not None:
        return quick
    return output_of_table(values, fields)


def _quick(values: list[Any], fields: Fields) -> Output | None:
    """A column of single values, looked at once; None to let the slower way say what is wrong."""
    import pyarrow as pa  # here, to keep start-up light

    try:
        kind: Type = read_kind(fields[VALUE]) if fields else inference.kind_of(values)
        column = columns.build(values, kind)
    except inference.Unfit:
        return None
    return Output(Schema.from_fields({VALUE: str(kind)}, "list"), pa.table([column], names=[VALUE]))


_SINGLE = {NoneType, bool, int, float, str, bytes}


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
