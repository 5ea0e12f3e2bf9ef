"""Tables of Arrow as frames of pandas, which keep every value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def to_frame(table: pa.Table) -> Any:
    """Return a DataFrame; integer and Boolean columns with None get pandas' nullable types, which keep every value."""
    import pandas as pd  # here: it is slow to import, and optional
    import pyarrow as pa  # here, to keep start-up light

    frame = table.to_pandas()
    for place, column in enumerate(table.columns):
        kind = column.type
        if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            sign = "U" * pa.types.is_unsigned_integer(kind)
            name = f"{sign}Int{kind.bit_width}" if pa.types.is_integer(kind) else "boolean"
            frame.isetitem(place, column.to_pandas(types_mapper={kind: pd.api.types.pandas_dtype(name)}.get))
    return frame
