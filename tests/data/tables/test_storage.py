"""Engines, orders and partitions of tables."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from aaiclick.data import Context, Schema
from aaiclick.data.tables.storage import read_storage
from aaiclick.errors import InputError

COLUMNS = {
    "id": "Int64",
    "day": "Date",
    "at": "DateTime64(3, 'UTC')",
    "local": "DateTime",
    "maybe": "Nullable(Int64)",
    "f": "Float64",
    "l": "Array(Int64)",
    "odd `name": "LowCardinality(String)",
}


async def test_a_table_is_sorted_and_divided_as_was_asked(road: Context) -> None:
    made = await road.create_object(COLUMNS, order_by=["odd `name", "id"], partition_by=["toYYYYMM(day)", "id"])
    row: dict[str, Any] = {"local": datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None), "l": [], "odd `name": "x"}
    rows = [{**row, "id": n, "day": date(2024, n, 1), "at": datetime(2024, 1, 1, tzinfo=UTC), "f": 1.0} for n in (2, 1)]
    await made.insert(rows)
    assert await made.insert(made.where("id = 1")) == 1
    assert await made.order_by("id")["id"].data() == [1, 1, 2]
    found = await road.client.rows(f"SELECT partition_key, sorting_key FROM system.tables WHERE name = '{made.table}'")
    assert [column[0] for column in found.columns] == ["(toYYYYMM(day), id)", "`odd \\`name`, id"]


async def test_order_of_rows_is_kept_beside_an_order_of_the_table(context: Context) -> None:
    made = await context.create_object_from_value({"a": [3, 1, 2]}, order=True, order_by="a")
    assert await made.data() == {"a": [3, 1, 2]}
    assert await (await made.copy()).data() == {"a": [3, 1, 2]}


async def test_of_rows_that_replace_others_the_last_is_seen_always(road: Context) -> None:
    made = await road.create_object(
        {"id": "Int64", "v": "String"}, engine="ReplacingMergeTree", order_by="id", name="r"
    )
    try:
        await made.insert({"id": [1, 2], "v": ["a", "b"]})
        await made.insert({"id": [1], "v": ["c"]})
        again = await road.open_object("r")
        for seen in (made, again):
            assert await seen.order_by("id").data() == {"id": [1, 2], "v": ["c", "b"]}
            assert (await seen.count(), await seen.where("v = 'a'").count()) == (2, 0)
        await again.insert(again.with_columns(v="z"))
        assert await again["v"].data() == ["z", "z"]
        copied = await again.copy()
        await copied.insert(copied)
        assert await copied.count() == 4
    finally:
        await road.delete_object("r")


async def test_the_highest_version_is_the_last(context: Context) -> None:
    columns = {"id": "Int64", "version": "UInt32", "at": "DateTime"}
    made = await context.create_object(columns, engine="ReplacingMergeTree(version)", order_by="id")
    for version in (2, 3, 1):
        await made.insert(
            {"id": [1], "version": [version], "at": [datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None)]}
        )
    assert await made["version"].data() == [3]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"engine": "SummingMergeTree"}, "merges them: compute totals with group_by"),
        ({"engine": "ReplacngMergeTree"}, "Did you mean ReplacingMergeTree|silently"),
        ({"engine": "Memory"}, "one of MergeTree, ReplacingMergeTree"),
        ({"engine": "MergeTree ORDER BY rand()"}, "one of"),
        ({"engine": None}, "one of"),
        ({"engine": "MergeTree(id)"}, "takes no arguments"),
        ({"engine": "ReplacingMergeTree"}, "keeps one row for each key"),
        ({"engine": "ReplacingMergeTree(f)", "order_by": "id"}, "a version must be"),
        ({"engine": "ReplacingMergeTree(maybe)", "order_by": "id"}, "Nullable"),
        ({"engine": "ReplacingMergeTree", "order_by": "f"}, "floats do not distinguish rows"),
        ({"order_by": "idd"}, "Did you mean id"),
        ({"order_by": ["id", "id"]}, "name each column only once"),
        ({"order_by": "maybe"}, "None cannot be sorted"),
        ({"order_by": "l"}, "cannot be sorted by a Array"),
        ({"order_by": "id DESC"}, "it must be the name of a column"),
        ({"partition_by": "f"}, "floats"),
        ({"partition_by": "rand()"}, "it must be the name of a column"),
        ({"partition_by": "toYYYYMM(id)"}, "with a zone"),
        ({"partition_by": "toYYYYMM(local)"}, "Give the time a zone"),
        ({"partition_by": "toYear(nothing)"}, "it must be the name of a column"),
    ],
)
def test_what_would_lose_rows_or_sorts_nothing_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_storage(Schema.from_fields(COLUMNS), **given)


def test_rows_that_replace_others_have_no_order() -> None:
    with pytest.raises(InputError, match="order=True"):
        read_storage(Schema.from_fields(COLUMNS, ordered=True), "ReplacingMergeTree", "id")
