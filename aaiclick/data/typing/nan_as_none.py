"""NaN that means «missing», as pandas writes it: it becomes None on the way in.

Of pandas it does so by itself, since its columns of floats have nothing else for it. Everything else that comes in has
a None of its own, or a null, and there NaN is NaN.
"""

from __future__ import annotations

from typing import Any

from aaiclick.config import settings
from aaiclick.data.typing.grammar import Type


def means_none(of_pandas: bool, nan_to_null: bool | None, kind: Type | None) -> bool:
    """Whether NaN of a column means None. `kind` is the type that it is to have: where that holds no None, pandas' NaN
    stays what it is."""
    if nan_to_null is not None:
        return nan_to_null
    return of_pandas and settings().nan_to_null and (kind is None or kind.is_nullable)


def without_nan(column: Any) -> Any:
    """The values of a column, a list or Arrow's, with None for NaN; not those inside of lists."""
    if isinstance(column, list):
        return [None if isinstance(value, float) and value != value else value for value in column]
    import pyarrow as pa  # here, to keep start-up light
    import pyarrow.compute as pc  # here, to keep start-up light

    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
