"""Conversion of tabular Python values (scalars, lists, dicts, frames, arrays) to Arrow tables with a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from aaiclick.config import settings
from aaiclick.data.display import glimpse
from aaiclick.data.typing import arrow_casts, arrow_columns, inference
from aaiclick.data.typing.grammar import Type
from aaiclick.data.typing.inference import Unfit
from aaiclick.data.typing.named_columns import Spread, spread
from aaiclick.data.typing.schema import VALUE, Schema, Shape
from aaiclick.data.typing.types import read_kind
from aaiclick.errors import InputError
from aaiclick.urls import did_you_mean, shown

if TYPE_CHECKING:
    import pyarrow as pa


class Tabulated(NamedTuple):
    """A value as an Arrow table, ready to be inserted, and its schema."""

    schema: Schema
    data: pa.Table


def tabulate(value: object, fields: Mapping[str, object] | None = None, nan_to_null: bool | None = None) -> Tabulated:
    """Return the value as a table with exact types; `fields` gives the types of some or all columns.

    A value that its type cannot hold exactly raises InputError with its row and column. Times without a zone remain so,
    whatever library they come from. A named index of a pandas frame becomes a column; whether NaN becomes None is told
    by `nan_to_null`, or if that is None by `means_none`.
    """
    import pyarrow as pa  # here, to keep start-up light

    given = {str(name): _given_kind(name, kind) for name, kind in (fields or {}).items()}
    spreaded = _with_given(spread(value), given)
    kinds: dict[str, Type] = {}
    arrays = []
    for name, column in spreaded.columns.items():
        with _named(name):
            wanted = given.get(name)
            if means_none(name in spreaded.of_pandas, nan_to_null, wanted):
                column = without_nan(column)
            kinds[name] = wanted or _inferred(column)
            arrays.append(_fitted(column, kinds[name]))
    schema = Schema.from_fields([(name, str(kind)) for name, kind in kinds.items()], spreaded.shape)
    return Tabulated(schema, pa.table(arrays, names=list(kinds)))


def conform(value: object, schema: Schema, nan_to_null: bool | None = None) -> pa.Table:
    """Return the value as a table with the columns of a schema, ready to be inserted.

    Columns are matched by name. A missing column becomes null if its type is Nullable; otherwise raise InputError.
    """
    import pyarrow as pa  # here, to keep start-up light

    kinds = {field.name: read_kind(field.type) for field in schema.fields}
    spreaded = spread(value)
    if not (spreaded.is_empty and not spreaded.columns):
        _check_names(spreaded.columns, kinds)
    rows = spreaded.rows
    arrays = []
    for name, kind in kinds.items():
        with _named(name):
            column = spreaded.columns.get(name, [None] * rows)
            if means_none(name in spreaded.of_pandas, nan_to_null, kind):
                column = without_nan(column)
            arrays.append(_fitted(column, kind))
    return pa.table(arrays, names=list(kinds))


# ---------------------------------------------------------------- columns


def _inferred(column: Any) -> Type:
    return inference.kind_of(column) if isinstance(column, list) else arrow_casts.kind_of_data(column)


def _fitted(column: Any, kind: Type) -> Any:
    return arrow_columns.build(column, kind) if isinstance(column, list) else arrow_casts.fit(column, kind)


class _named:
    """Context manager that converts Unfit to an InputError with the column's name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, Unfit):
            field = f"column {shown(self.name)}, row {error.row} (counted from 0)"
            value = glimpse(error.value)
            raise InputError(field=field, value=value, rule=error.rule, hint=error.hint) from None
        if isinstance(error, InputError) and error.facts.get("field") == "type":
            raise InputError(**{**error.facts, "field": f"type of column {shown(self.name)}"}) from None


# ---------------------------------------------------------------- names


def _given_kind(name: object, kind: object) -> Type:
    with _named(str(name)):
        return read_kind(kind)


def _with_given(found: Spread, given: Mapping[str, Type]) -> Spread:
    """Add the columns that only `fields` names, with None in each row; raise InputError where that is not possible.

    It is possible for an empty value and for a list of dicts, whose rows may lack columns.
    """
    if found.is_empty and not found.columns:
        if not given:
            rule, hint = "the type of its values is unknown", f'Give it: fields={{"{VALUE}": "Int64"}}.'
            raise InputError(field="value", value="[]", rule=rule, hint=hint)
        shape: Shape = "list" if list(given) == [VALUE] else "table"
        return Spread(shape, {name: [] for name in given})
    missing = [name for name in given if name not in found.columns]
    if missing and not found.is_sparse:
        hint = did_you_mean(missing[0], found.columns) or f"Its columns: {shown(', '.join(found.columns))}."
        raise InputError(field="fields", value=shown(missing[0]), rule="there is no such column", hint=hint)
    more: dict[str, Any] = {name: [None] * found.rows for name in missing}
    return found._replace(columns={**found.columns, **more})


def _check_names(given: Mapping[str, Any], kinds: Mapping[str, Type]) -> None:
    for name in given:
        if name not in kinds:
            hint = did_you_mean(name, kinds) or f"Its columns: {shown(', '.join(kinds))}."
            raise InputError(field="columns", value=shown(repr(name)), rule="the table has no such column", hint=hint)
    for name in _missing(given, kinds):
        rule = f"it is missing, and {kinds[name]} cannot be null"
        raise InputError(field="columns", value=shown(repr(name)), rule=rule, hint="Add it.")


def _missing(given: Mapping[str, Any], kinds: Mapping[str, Type]) -> Iterator[str]:
    return (name for name, kind in kinds.items() if name not in given and not kind.is_nullable)


# ---------------------------------------------------------------- NaN on the way in


def means_none(of_pandas: bool, nan_to_null: bool | None, kind: Type | None) -> bool:
    """Return whether NaN in a column means None; `nan_to_null` decides if it is not None.

    By default only that of pandas does, whose float columns have no other missing value: all other sources can hold
    None, so their NaN is kept. `kind` is the column's target type, or None if it is still to be inferred: a type that
    is not Nullable keeps NaN.
    """
    if nan_to_null is not None:
        return nan_to_null
    return of_pandas and settings().nan_to_null and (kind is None or kind.is_nullable)


def without_nan(column: Any) -> Any:
    """Return a column (a list or an Arrow array) with None for NaN; NaN inside of lists is kept."""
    if isinstance(column, list):
        return [None if isinstance(value, float) and value != value else value for value in column]
    import pyarrow as pa  # here, to keep start-up light
    import pyarrow.compute as pc  # here, to keep start-up light

    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
