"""Conversion of NaN to None on the way in, where NaN stands for a missing value.

By default only pandas data is converted, since its float columns have no other missing value. All other sources can
represent None or null, so their NaN is kept.
"""

from __future__ import annotations

from typing import Any

from aaiclick.config import settings
from aaiclick.data.typing.grammar import Type


def means_none(of_pandas: bool, nan_to_null: bool | None, kind: Type | None) -> bool:
    """Return whether NaN in a column means None; `nan_to_null` decides if it is not None.

    `kind` is the column's target type, or None if it is still to be inferred: a type that is not Nullable keeps NaN.
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
