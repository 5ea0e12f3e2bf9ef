"""Separation of a Python value into named columns; frame types are recognized without importing their libraries."""

from __future__ import annotations

import array as arrays
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import NoneType
from typing import Any, NamedTuple

from aaiclick.data.display import glimpse
from aaiclick.data.sql import quoting
from aaiclick.data.typing.inference import Column
from aaiclick.data.typing.schema import VALUE, Shape
from aaiclick.errors import InputError
from aaiclick.urls import shown

SEQUENCES = (list, tuple, range, deque, arrays.array)
_LAZY = "It can be read only once: make a list of it first."


class Spread(NamedTuple):
    """A value as named columns, each a list or an Arrow ChunkedArray."""

    shape: Shape
    columns: dict[str, Any]
    is_sparse: bool = False
    """Whether rows may lack columns, as in a list of dicts."""
    of_pandas: frozenset[str] = frozenset()
    """The names of the columns that come from pandas."""

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), []))

    @property
    def is_empty(self) -> bool:
        return not self.rows


def spread(value: object) -> Spread:
    """Return the shape and columns of a value; raise InputError if it is not tabular."""
    if isinstance(value, SEQUENCES):
        return _from_sequence(list(value))
    if isinstance(value, Mapping):
        return _from_mapping(value)
    maker = _maker(value)
    if maker in _MAKERS and (found := _MAKERS[maker](value)) is not None:
        return found
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return _from_arrow(_table(value))
    if isinstance(value, set | frozenset):
        raise _refused(value, "a set has no order", "Give sorted(…) or list(…) of it.")
    if isinstance(value, Iterator) or (hasattr(value, "__iter__") and not _is_one(value)):
        raise _refused(value, f"a {type(value).__name__} is not a list", _LAZY)
    if value is None:
        raise _refused(
            value, "None has no type", 'Give a list and its type: [None], fields={"value": "Nullable(Int64)"}.'
        )
    return Spread("scalar", {VALUE: [value]})


def _is_one(value: object) -> bool:
    return isinstance(value, str | bytes | bytearray | memoryview) or hasattr(value, "isoformat")


# ---------------------------------------------------------------- built-in types


def _from_sequence(rows: Column) -> Spread:
    kinds = set(map(type, rows))
    if not rows:
        return Spread("list", {})
    if not any(issubclass(kind, Mapping) for kind in kinds):
        return Spread("list", {VALUE: rows})
    if not all(issubclass(kind, Mapping) for kind in kinds):
        row, value = next((row, value) for row, value in enumerate(rows) if not isinstance(value, Mapping))
        hint = "Give a list of dicts, or a list without any."
        raise _refused(value, f"row {row} (counted from 0) is not a dict, although others are", hint)
    return Spread("table", _from_dicts(rows), is_sparse=True)


def _from_dicts(rows: list[Mapping[Any, Any]]) -> dict[str, Any]:
    names = {name: None for row in rows for name in row}
    for name in names:
        quoting.check_column(name)
    if not names:
        raise _refused(rows, "its dicts are empty", "Give every row its columns.")
    return {name: [row.get(name) for row in rows] for name in names}


def _from_mapping(value: Mapping[Any, Any]) -> Spread:
    if not value:
        raise _refused(value, "it has no columns", 'Give names and values: {"a": [1, 2]}.')
    names = [quoting.check_column(name) for name in value]
    found = {name: _column(value[name]) for name in names}
    many = [name for name in names if found[name] is not None]
    if not many:
        return Spread("record", {name: [value[name]] for name in names})
    if len(many) < len(names):
        one = next(name for name in names if found[name] is None)
        rule = f"column {shown(many[0])} is a list and column {shown(one)} is not"
        hint = "Give lists of one length for a table; for one row that holds a list, give a list with one dict."
        raise _refused(value, rule, hint)
    lengths = {name: len(column) for name, column in found.items() if column is not None}
    if len(set(lengths.values())) > 1:
        rule = f"the columns differ in length: {', '.join(f'{shown(name)} {count}' for name, count in lengths.items())}"
        raise _refused(value, rule, "Give lists of one length.")
    return Spread("table", found, of_pandas=frozenset(name for name in names if _maker(value[name]) == "pandas"))


def _maker(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _column(value: Any) -> Any:
    """Return the values of one column, or None if `value` is a single value."""
    if type(value) is list:
        return value
    if isinstance(value, SEQUENCES):
        return list(value)
    maker = _maker(value)
    if maker in _MAKERS or hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        found = spread(value)
        if found.shape == "list":
            return found.columns.get(VALUE, [])
        if found.shape == "table":
            raise _refused(value, "a table cannot be a column", "")
    elif isinstance(value, Iterator | set | frozenset):
        spread(value)  # raises an error that tells the reason
    return None


# ---------------------------------------------------------------- other libraries


def _from_numpy(value: Any) -> Spread | None:
    import numpy as np  # here, to keep start-up light
    import pyarrow as pa  # here, to keep start-up light

    if not isinstance(value, np.ndarray):
        return None
    if value.dtype.names and value.ndim == 1:
        columns = {quoting.check_column(name): _column(value[name]) for name in value.dtype.names}
        return Spread("table", columns)
    if value.ndim == 0:
        return Spread("scalar", {VALUE: [value[()]]})
    if value.ndim > 1 or value.dtype.kind not in "biufUSM" or isinstance(value, np.ma.MaskedArray):
        return Spread("list", {VALUE: value.tolist() if value.dtype.kind not in "mM" else list(value)})
    try:
        return Spread("list", {VALUE: pa.chunked_array([pa.array(value, from_pandas=False)])})
    except (pa.ArrowException, NotImplementedError):
        return Spread("list", {VALUE: list(value)})  # value by value, to name the misfit


def _from_pandas(value: Any) -> Spread | None:
    kind = type(value).__name__
    if kind == "Series" or hasattr(value, "to_series"):
        return Spread("list", {VALUE: _pandas_column(value)}, of_pandas=frozenset([VALUE]))
    if not hasattr(value, "columns"):
        return None
    named = [name for name in value.index.names if name is not None]
    names = [quoting.check_column(name) for name in (*named, *value.columns)]
    if len(set(names)) < len(names):
        raise _refused(names, "two columns have the same name", "Rename one.")
    frame = value.reset_index(level=named) if named else value
    if not names:
        raise _refused(value, "it has no columns", "")
    return Spread("table", {name: _pandas_column(frame[name]) for name in names}, of_pandas=frozenset(names))


def _pandas_column(series: Any) -> Any:
    """Return the values of a pandas column.

    In an object column with values other than floats, NaN means that a value is missing, and becomes None.
    """
    import numpy as np  # here, to keep start-up light
    import pyarrow as pa  # here, to keep start-up light

    if not isinstance(series.dtype, np.dtype):
        with suppress(pa.ArrowException, TypeError, ValueError):  # then value by value, to name the misfit
            found = pa.array(series, from_pandas=True)
            return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
        return series.tolist()
    if series.dtype.kind != "O":
        return _column(series.to_numpy())
    values = series.tolist()
    if not set(map(type, values)) <= {float, NoneType}:
        values = [None if type(value) is float and value != value else value for value in values]
    return values


def _from_polars(value: Any) -> Spread | None:
    import pyarrow as pa  # here, to keep start-up light

    if type(value).__name__ == "Series":
        return Spread("list", {VALUE: pa.chunked_array(value)})
    if type(value).__name__ == "LazyFrame":
        raise _refused(value, "it is not computed yet", "Give its .collect().")
    return _from_arrow(_table(value))


def _from_pyarrow(value: Any) -> Spread | None:
    import pyarrow as pa  # here, to keep start-up light

    if isinstance(value, pa.Scalar):
        return Spread("scalar", {VALUE: pa.chunked_array([pa.array([value.as_py()], value.type)])})
    if isinstance(value, pa.Array):
        return Spread("list", {VALUE: pa.chunked_array([value])})
    if isinstance(value, pa.ChunkedArray):
        return Spread("list", {VALUE: value})
    if isinstance(value, pa.RecordBatchReader):
        raise _refused(value, "a RecordBatchReader is not a table", "Give its .read_all().")
    return _from_arrow(_table(value)) if isinstance(value, pa.Table | pa.RecordBatch) else None


def _table(value: Any) -> Any:
    import pyarrow as pa  # here, to keep start-up light

    try:
        return pa.table(value)
    except (pa.ArrowInvalid, TypeError, ValueError) as error:
        raise _refused(value, f"Arrow cannot read it ({shown(str(error))})", "") from None


def _from_arrow(table: Any) -> Spread:
    names = [quoting.check_column(name) for name in table.column_names]
    if len(set(names)) < len(names) or not names:
        raise _refused(
            names, "columns have the same name" if names else "it has no columns", "Rename one." * bool(names)
        )
    return Spread("table", dict(zip(names, table.columns, strict=True)))


_MAKERS = {"numpy": _from_numpy, "pandas": _from_pandas, "polars": _from_polars, "pyarrow": _from_pyarrow}


def _refused(value: object, rule: str, hint: str) -> InputError:
    return InputError(field="value", value=glimpse(value), rule=rule, hint=hint)
