"""Numbered copies that are cut into parts, and tables that are joined."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest

from aaiclick.data import Context, Object
from aaiclick.data.clients.contract import Rows
from aaiclick.data.row_parts.parts import (
    ATTACHED_MAX,
    Part,
    chosen,
    join_parts,
    number_rows,
    shaped,
    united,
)
from aaiclick.data.typing.schema import Schema
from aaiclick.data.views import View
from aaiclick.errors import DataRefused, InputError


async def test_the_parts_of_a_copy_are_disjoint_and_complete(context: Context) -> None:
    draw = random.Random(5)
    for _ in range(8):
        count, size = draw.randrange(1, 3000), draw.randrange(1, 700)
        values = [draw.randrange(50) for _ in range(count)]
        numbered = await number_rows(await context.create_object_from_value(values), size)
        assert numbered.count == count
        read = [await numbered.part(start, start + size)["value"].data() for start in range(0, count, size)]
        assert [value for part in read for value in part] == values


async def test_a_copy_does_not_change_with_what_it_is_of(context: Context) -> None:
    rows = await context.create_object_from_value({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    numbered = await number_rows(rows)
    await rows.insert({"a": [4], "b": ["w"]})
    assert await numbered.part(0, 10).data() == {"a": [1, 2, 3], "b": ["x", "y", "z"]}


async def test_a_copy_has_the_columns_and_types_of_what_it_is_of(context: Context) -> None:
    fields = {"__row": "LowCardinality(String)", "b c": "Nullable(Decimal(10, 2))", "d": "DateTime('UTC')"}
    rows = await context.create_object(fields)
    numbered = await number_rows(rows)
    assert numbered.names == list(fields)
    assert numbered.schema.types == rows.schema.types
    assert numbered.count == 0
    assert numbered.key not in fields


async def test_a_copy_of_a_view_and_of_ordered_rows_is_in_their_order(context: Context) -> None:
    rows = await context.create_object_from_value({"a": [3, 1, 2]}, order=True)
    assert await (await number_rows(rows)).part(0, 3).data() == {"a": [3, 1, 2]}
    seen = rows.where("a > 1").order_by("a").limit(2)
    assert await (await number_rows(seen)).part(1, 2).data() == {"a": [3]}


async def test_a_copy_says_how_much_it_takes(context: Context) -> None:
    rows = await context.create_object_from_value({"a": list(range(1_000)), "b": ["x" * 100] * 1_000})
    numbered = await number_rows(rows)
    size = numbered.size_bytes
    assert numbered.count == 1_000
    assert 1_000 * (8 + 8 + 100) <= size < 1_000 * (8 + 8 + 110)
    empty = await number_rows(rows.where("a < 0"))
    assert (empty.count, empty.size_bytes) == (0, 0)


async def test_only_what_every_user_of_a_server_may_read_is_asked(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its system tables, a server shows these to everyone, and others to whom they are granted."""
    rows, ask, asked = await context.create_object_from_value([1, 2]), context.client.rows, ""

    async def rows_noted(statement: str) -> Rows:
        nonlocal asked
        asked += statement
        return await ask(statement)

    monkeypatch.setattr(context.client, "rows", rows_noted)
    assert (await number_rows(rows)).size_bytes > 0
    assert set(re.findall(r"system\.(\w+)", asked)) <= {"tables", "columns", "databases"}


@pytest.mark.parametrize("size", [10, 100, 8192, 20_000])
async def test_reading_a_part_reads_about_that_part(context: Context, size: int) -> None:
    rows = await context.create_object_from_value(list(range(60_000)))
    numbered = await number_rows(rows, size)
    part = numbered.part(2 * size, 3 * size)
    plan = await context.client.rows(f"EXPLAIN ESTIMATE {part.explain()}")
    read = dict(zip(plan.names, (column[0] for column in plan.columns), strict=True))["rows"]
    assert read <= size + 2 * min(size, 8192)


async def test_a_part_travels_as_a_reference(context: Context) -> None:
    numbered = await number_rows(await context.create_object_from_value({"a": list(range(10))}))
    found = await context.open_reference(numbered.part(3, 6).reference())
    assert isinstance(found, View)
    assert await found.data() == {"a": [3, 4, 5]}
    assert await shaped(found, "list").data() == [3, 4, 5]


async def test_chosen_rows_are_copied_with_their_types(context: Context) -> None:
    rows = await context.create_object_from_value({"a": list(range(10))}, fields={"a": "UInt16"})
    numbered = await number_rows(rows)
    kept = await chosen(numbered.part(2, 8), numbered.key, pa.array([3, 5, 9], pa.uint64()))
    assert await kept.data() == {"a": [3, 5]}
    assert kept.schema.types == {"a": "UInt16"}


# ---------------------------------------------------------------- joining


async def made(context: Context, *values: Any) -> list[Part]:
    return [Part(await context.create_object_from_value(value)) for value in values]


async def test_parts_of_one_type_are_joined_in_order_and_the_same_rows_stay_twice(context: Context) -> None:
    parts = await made(context, [1, 2], [1, 2], [3])
    joined = await join_parts(context, parts)
    assert await joined.data() == [1, 2, 1, 2, 3]
    assert await parts[0].rows.data() == [1, 2]
    assert joined.schema.types == {"value": "Int64"}


@pytest.mark.parametrize(
    ("values", "joined", "types"),
    [
        ([[1], [2.5]], [1.0, 2.5], {"value": "Float64"}),
        ([[1], [None, 2], [3]], [1, None, 2, 3], {"value": "Nullable(Int64)"}),
        ([[{"a": 1}], [{"a": 2, "b": "x"}]], {"a": [1, 2], "b": [None, "x"]}, {"a": "Int64", "b": "Nullable(String)"}),
        ([[{"a": 1, "b": 2}], [{"b": 3, "a": 4}]], {"a": [1, 4], "b": [2, 3]}, {"a": "Int64", "b": "Int64"}),
    ],
)
async def test_types_that_differ_are_united(
    context: Context, values: list[Any], joined: Any, types: dict[str, str]
) -> None:
    found = await join_parts(context, await made(context, *values))
    assert await found.data() == joined
    assert found.schema.types == types


async def test_untyped_columns_go_with_any_type(context: Context) -> None:
    void = await context.create_object_from_value([None, None], fields={"value": "Nullable(UInt8)"})
    texts = await context.create_object_from_value(["a"])
    joined = await join_parts(context, [Part(void, {"value": "Nullable(Nothing)"}), Part(texts)])
    assert await joined.data() == [None, None, "a"]
    assert joined.schema.types == {"value": "Nullable(String)"}
    with pytest.raises(InputError, match="nothing but None"):
        await join_parts(context, [Part(void, {"value": "Nullable(Nothing)"})])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (([1], ["a"]), "Int64, String"),
        (([1], [{"value": 2}]), "single values"),
        (([{"a": [1]}], [{"b": 1}]), "Array.Int64., None"),
    ],
)
async def test_types_that_do_not_go_together_are_named(context: Context, values: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        await join_parts(context, await made(context, *values))


async def test_a_number_that_a_float_cannot_hold_is_refused(context: Context) -> None:
    with pytest.raises(DataRefused):
        await join_parts(context, await made(context, [2**53 + 1], [0.5]))


async def test_very_many_parts_are_copied(context: Context) -> None:
    rows = await context.create_object_from_value([7])
    joined = await join_parts(context, [Part(rows)] * (ATTACHED_MAX + 1))
    assert await joined.count() == ATTACHED_MAX + 1
    found = await context.client.rows(f"SELECT uniqExact(_part) FROM {joined.table}")
    assert found.columns[0][0] < 10


async def test_ordered_rows_are_copied(context: Context, numbers: Object) -> None:
    ordered = await context.create_object_from_value([9, 8], order=True)
    assert await (await join_parts(context, [Part(ordered), Part(numbers)])).data() == [9, 8, 1, 2, 3, 4]


def test_a_schema_for_all() -> None:
    one, other = Schema.from_fields({"a": "Int64"}), Schema.from_fields({"a": "UInt8", "b": "String"})
    assert united([(one, {}), (other, {"b": "Nullable(Nothing)"})][:1]).types == {"a": "Int64"}
    assert united([(one, {}), (other, {})]).types == {"a": "Int64", "b": "Nullable(String)"}


async def test_empty_lists_take_the_type_that_others_have(context: Context) -> None:
    """The values are as they were, at every depth."""
    deep = await context.create_object_from_value([[], [[], []]], fields={"value": "Array(Array(UInt8))"})
    known = await context.create_object_from_value([[[["a"]]]])
    joined = await join_parts(context, [Part(deep, {"value": "Array(Array(Nothing))"}), Part(known)])
    assert joined.schema.types == {"value": "Array(Array(Array(String)))"}
    assert await joined.data() == [[], [[], []], [[["a"]]]]
    with pytest.raises(InputError, match=r'nothing but what is empty is unknown.*"Array\(Array\(…\)\)"'):
        await join_parts(context, [Part(deep, {"value": "Array(Array(Nothing))"})])
    words = await context.create_object_from_value(["a"])
    with pytest.raises(InputError, match=r"column value: Array\(Array\(…\)\), String"):
        await join_parts(context, [Part(deep, {"value": "Array(Array(Nothing))"}), Part(words)])
