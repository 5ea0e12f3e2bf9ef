"""Values of other libraries, taken apart into columns."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aaiclick.data.typing.named_columns import spread
from aaiclick.data.typing.tabulation import tabulate
from aaiclick.errors import InputError


class Stream:
    """Any object that speaks Arrow's protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table({"a": [1, 2]}).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (Stream(), [{"a": 1}, {"a": 2}]),
        (np.array(5), [{"value": 5}]),
        (np.ma.array([1, 2], mask=[False, True]), [{"value": 1}, {"value": None}]),
        (np.array([1, "x"], dtype=object)[:1], [{"value": 1}]),
        (np.array([1, 2], dtype=">i4"), [{"value": 1}, {"value": 2}]),
        (np.array([True]), [{"value": True}]),
        (np.array([b"ab"]), [{"value": b"ab"}]),
        (pd.DataFrame({"f": [1.5, float("inf")]}), [{"f": 1.5}, {"f": float("inf")}]),
        (pd.DataFrame({"o": ["x", float("nan"), None]}, dtype=object), [{"o": "x"}, {"o": None}, {"o": None}]),
        (pd.Series([1, 2], name="n"), [{"value": 1}, {"value": 2}]),
        (pd.Index(["x"]), [{"value": "x"}]),
        (pl.Series("n", [1]), [{"value": 1}]),
        ({"a": pl.Series([1]), "b": pa.array(["x"]), "c": range(1)}, [{"a": 1, "b": "x", "c": 0}]),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_value_of_another_library_is_a_table(value: object, rows: list[dict[str, Any]]) -> None:
    assert tabulate(value).data.to_pylist() == rows


def test_nan_of_pandas_is_none_unless_it_is_wanted() -> None:
    frame = pd.DataFrame({"f": [1.5, float("nan")]})
    found, kept = tabulate(frame), tabulate(frame, nan_to_null=False)
    assert (found.schema.types, found.data["f"].null_count) == ({"f": "Nullable(Float64)"}, 1)
    assert (kept.schema.types, kept.data["f"].null_count) == ({"f": "Float64"}, 0)


def test_an_index_with_names_becomes_columns() -> None:
    index = pd.MultiIndex.from_tuples([("x", 1)], names=["k", None])
    assert list(spread(pd.DataFrame({"a": [5]}, index=index)).columns) == ["k", "a"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (pd.DataFrame({"a": [1]}, index=pd.Index([1], name="a")), "same name"),
        (pd.Series(pd.period_range("2024", periods=1, freq="M")), "no ClickHouse type|cannot be stored"),
        (pd.Series([pd.Timedelta(1)]), "cannot be stored"),
        (np.array([1 + 2j]), "cannot be stored"),
        (pa.RecordBatchReader.from_batches(pa.schema([]), []), "read_all"),
        ({"a": pa.table({"x": [1]})}, "cannot be a column"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_is_no_table_is_refused(value: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        tabulate(value)
