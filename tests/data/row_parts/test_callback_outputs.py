"""What functions return for rows, as columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from aaiclick.data import Context
from aaiclick.data.row_parts.callback_outputs import output_of_table, output_of_values, store
from aaiclick.errors import InputError


@pytest.mark.parametrize(
    ("values", "fields", "types"),
    [
        ([1, 2], {}, {"value": "Int64"}),
        ([1, 2.5], {}, {"value": "Float64"}),
        ([1, None], {}, {"value": "Nullable(Int64)"}),
        ([1, 2], {"value": "UInt8"}, {"value": "UInt8"}),
        ([1, 2], {"value": "Nullable(Int64)"}, {"value": "Nullable(Int64)"}),
        ([1, 2**63], {}, {"value": "UInt64"}),
        ([1, 2], {"value": "Int64"}, {"value": "Int64"}),
        ([1, 2.0, True], {"value": "Int64"}, {"value": "Int64"}),
        ([True, False], {}, {"value": "Bool"}),
        ([0.5, None], {}, {"value": "Nullable(Float64)"}),
        (["a", "b"], {}, {"value": "String"}),
        ([[1], [2, 3]], {}, {"value": "Array(Int64)"}),
        ([datetime(2026, 1, 1, tzinfo=UTC)], {}, {"value": "DateTime64(6, 'UTC')"}),
        ([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], {}, {"a": "Int64", "b": "String"}),
        ([{"a": 1}, {"b": "y"}], {}, {"a": "Nullable(Int64)", "b": "Nullable(String)"}),
        ([{"a": 1}], {"a": "Float64"}, {"a": "Float64"}),
    ],
)
def test_values_become_columns(values: list[Any], fields: dict[str, str], types: dict[str, str]) -> None:
    found = output_of_values(values, fields)
    assert found.schema.types == types
    assert found.data.num_rows == len(values)
    assert found.schema.shape == ("table" if isinstance(values[0], dict) else "list")
    assert not found.untyped


def test_nothing_but_none_is_left_untyped() -> None:
    assert output_of_values([None, None], {}).untyped == {"value": "Nullable(Nothing)"}
    found = output_of_values([{"a": 1, "b": None}, {"a": 2, "b": None}], {})
    assert found.untyped == {"b": "Nullable(Nothing)"}
    assert not output_of_values([None], {"value": "Nullable(Int64)"}).untyped
    assert output_of_table(pa.table({"a": [1], "b": pa.nulls(1)}), {}).untyped == {"b": "Nullable(Nothing)"}


@pytest.mark.parametrize(
    ("values", "fields", "said"),
    [
        ([1, "a"], {}, "column value, row 1"),
        ([1, None], {"value": "Int64"}, "row 1.*not Nullable"),
        ([300], {"value": "UInt8"}, "UInt8 holds 0 to 255"),
        ([{"a": 1}, 2], {}, "row 1"),
        ([object()], {}, "cannot be stored"),
        (["a", "\ud800"], {}, "row 1.*surrogate"),
        ([1, True], {}, "row 1"),
        ([2**63], {"value": "Int64"}, "Int64 holds"),
        ([1, 0.5], {"value": "Int64"}, "row 1.*not a whole number"),
        ([1, "2"], {"value": "Int64"}, "row 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_row(values: list[Any], fields: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        output_of_values(values, fields)


def test_tables_of_many_kinds_become_columns() -> None:
    for value in (pa.table({"a": [1]}), pa.record_batch({"a": [1]}), {"a": [1]}, [{"a": 1}], {"a": 1}):
        assert output_of_table(value, {}).schema.types == {"a": "Int64"}
        assert output_of_table(value, {}).schema.shape == "table"
    assert output_of_table(pa.array([1, 2]), {}).schema.shape == "list"


async def test_outputs_are_stored_one_after_the_other(context: Context) -> None:
    outputs = [output_of_values(values, {}) for values in ([1, 2], [None], [0.5])]
    part = await store(context, outputs)
    assert await part.rows.data() == [1.0, 2.0, None, 0.5]
    assert part.rows.schema.types == {"value": "Nullable(Float64)"}
    assert not part.untyped


async def test_untyped_outputs_stay_untyped_together(context: Context) -> None:
    part = await store(context, [output_of_values([None], {}), output_of_values([None, None], {})])
    assert part.untyped == {"value": "Nullable(Nothing)"}
    assert await part.rows.count() == 3


def test_nothing_but_empty_lists_is_left_untyped() -> None:
    found = output_of_values([{"n": 1, "tags": []}, {"n": 2, "tags": []}], {})
    assert found.untyped == {"tags": "Array(Nothing)"}
    assert found.data["tags"].to_pylist() == [[], []]
    assert not output_of_values([[]], {"value": "Array(String)"}).untyped
    assert not output_of_values([[], [1]], {}).untyped


async def test_outputs_tell_the_types_of_each_other(context: Context) -> None:
    values: list[list[Any]] = [[[], [[]]], [[["a"]], []], [[], []]]
    part = await store(context, [output_of_values(each, {}) for each in values])
    assert not part.untyped
    assert part.rows.schema.types == {"value": "Array(Array(String))"}
    assert await part.rows.data() == [row for each in values for row in each]
    left = await store(context, [output_of_values([[]], {}), output_of_values([[[]]], {})])
    assert left.untyped == {"value": "Array(Array(Nothing))"}
    assert await left.rows.data() == [[], [[]]]


@pytest.mark.parametrize(
    ("values", "fields", "row"),
    [
        ([b"a"], {}, 0),
        ([None, b"a"], {}, 1),
        ([{"b": "x"}, {"b": None}, {"b": b"x"}][1:], {}, 1),
        ([["a"], [b"a"]][1:], {}, 0),
        ([{"b": {"k": b"a"}}], {}, 0),
        (["a", b"a"], {"value": "String"}, 1),
        ([bytearray(b"a")], {"value": "LowCardinality(String)"}, 0),
    ],
)
def test_bytes_do_not_become_texts(values: list[Any], fields: dict[str, str], row: int) -> None:
    with pytest.raises(InputError, match=f"row {row} .*would store bytes as a text"):
        output_of_values(values, fields)


async def test_bytes_of_one_length_come_back(context: Context) -> None:
    part = await store(context, [output_of_values([b"\xff\0", b"ab"], {"value": "FixedString(2)"})])
    assert await part.rows.data() == [b"\xff\0", b"ab"]
