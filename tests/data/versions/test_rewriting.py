"""`upsert` and `insert` into an Object with versions: by key, once for each token, and only where it can be told."""

from __future__ import annotations

import asyncio
import random
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from aaiclick.data import (
    Context,
    Object,
    col,
    create_object_from_value,
    data_context,
    lineage,
    list_versions,
    open_object,
    rollback,
)
from aaiclick.data.versions import catalog, rewriting
from aaiclick.errors import InputError, ObjectNotFound


async def users(context: Context, name: str) -> Object:
    return await context.create_object_from_value(
        {"id": [1, 2], "name": ["Ann", "Bo"]}, fields={"id": "Int64", "name": "Nullable(String)"}, name=name
    )


async def test_what_has_the_key_is_replaced_and_the_rest_is_new(context: Context, name: str) -> None:
    found = await users(context, name)
    assert await found.upsert([{"id": 2, "name": "Bob"}, {"id": 3, "name": "Cy"}], key="id") == (1, 1)
    assert await found.order_by("id").data() == {"id": [1, 2, 3], "name": ["Ann", "Bob", "Cy"]}
    assert await (await open_object(name, version=1)).data() == {"id": [1, 2], "name": ["Ann", "Bo"]}


async def test_a_version_that_goes_while_it_is_rolled_back_to_is_said_to_be_gone(
    context: Context, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await users(context, name)
    await found.upsert([{"id": 3, "name": "Cy"}], key="id")
    find = catalog.versions_of

    async def found_late(client: Any, table: str) -> list[Any]:
        return [each for each in await find(client, table) if each.number != 1]

    monkeypatch.setattr(rewriting, "versions_of", found_late)
    with pytest.raises(ObjectNotFound, match="version 1"):
        await rollback(name, 1)


async def test_rows_may_come_from_a_query_and_lack_columns_that_can_be_none(context: Context, name: str) -> None:
    found = await users(context, name)
    others = await context.create_object_from_value({"id": [1, 2, 9]})
    assert await found.upsert(others.where(col("id") != 2), key="id") == (1, 1)
    assert await found.order_by("id").data() == {"id": [1, 2, 9], "name": [None, "Bo", None]}


async def test_several_columns_are_a_key_together(context: Context, name: str) -> None:
    rows = {"a": [1, 1, 2], "b": ["x", "y", "x"], "v": [1, 2, 3]}
    found = await context.create_object_from_value(rows, name=name)
    assert await found.upsert({"a": [1, 2], "b": ["y", "y"], "v": [8, 9]}, key=["a", "b"]) == (1, 1)
    assert await found.order_by("a", "b").data() == {
        "a": [1, 1, 2, 2],
        "b": ["x", "y", "x", "y"],
        "v": [1, 8, 3, 9],
    }


@pytest.mark.parametrize(
    ("rows", "order_by", "told"),
    [
        ({"id": [3, 3], "name": ["a", "b"]}, None, "several rows have the key 3"),
        ({"id": [3, 3], "name": ["a", "a"]}, None, "several rows have the key 3"),
        ({"id": [3, 3], "name": ["a", "a"]}, "name", "several rows have the key 3"),
        ({"id": [3, 3], "name": ["a", None]}, "name", "several rows have the key 3"),
        ({"id": [None], "name": ["a"]}, None, "column id"),
        ({"id": [3], "name": ["a"], "more": [1]}, None, "no such column"),
        ({"id": [3], "name": [1]}, None, "name"),
    ],
)
async def test_what_cannot_be_told_apart_is_refused_and_changes_nothing(
    context: Context, name: str, rows: Any, order_by: str | None, told: str
) -> None:
    found = await users(context, name)
    with pytest.raises(InputError, match=told):
        await found.upsert(rows, key="id", order_by=order_by)
    assert await (await open_object(name)).data() == {"id": [1, 2], "name": ["Ann", "Bo"]}
    assert len(await list_versions(name)) == 1


async def test_null_is_no_key(context: Context, name: str) -> None:
    found = await users(context, name)
    with pytest.raises(InputError, match="the key of some rows is NULL"):
        await found.upsert({"id": [3], "name": [None]}, key="name")


async def test_the_last_of_an_order_counts(context: Context, name: str) -> None:
    found = await users(context, name)
    rows = {"id": [3, 3, 4, 3], "name": ["a", "c", "x", "b"]}
    assert await found.upsert(rows, key="id", order_by="name") == (2, 0)
    assert await found.where(col("id") > 2).order_by("id").data() == {"id": [3, 4], "name": ["c", "x"]}


async def test_rows_that_stood_there_twice_are_replaced_by_one(context: Context, name: str) -> None:
    found = await context.create_object_from_value({"id": [1, 1, 2]}, name=name)
    assert await found.upsert({"id": [1]}, key="id") == (0, 1)
    assert sorted((await found.data())["id"]) == [1, 2]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("String", ["", "a", "ä", "a'\\"]),
        ("LowCardinality(String)", ["a", "b"]),
        ("Nullable(UInt64)", [0, 2**64 - 1]),
        ("Decimal(18, 3)", [Decimal("0.001"), Decimal("-0.001")]),
        ("Date", [date(1970, 1, 1), date(2024, 2, 29)]),
        ("Bool", [True, False]),
        ("FixedString(2)", [b"ab", b"\0\0"]),
    ],
)
async def test_keys_of_every_type_that_tells_rows_apart(
    context: Context, name: str, kind: str, keys: list[Any]
) -> None:
    fields = {"k": kind, "v": "Int64"}
    rows = {"k": keys, "v": [0] * len(keys)}
    found = await context.create_object_from_value(rows, fields=fields, name=name)
    assert await found.upsert({"k": keys, "v": [1] * len(keys)}, key="k") == (0, len(keys))
    assert await found.upsert({"k": keys[:1], "v": [2]}, key="k") == (0, 1)
    assert sorted((await found.data())["v"]) == [1] * (len(keys) - 1) + [2]


async def test_a_token_counts_once_also_in_later_versions(context: Context, name: str) -> None:
    found = await users(context, name)
    for number in range(3):
        assert await found.upsert({"id": [5], "name": ["x"]}, key="id", token="a") == ((1, 0) if not number else (0, 0))
        await found.upsert({"id": [1], "name": [str(number)]}, key="id")
        assert await found.insert({"id": [6], "name": ["y"]}, token="b") == (0 if number else 1)
    assert sorted((await found.data())["id"]) == [1, 2, 5, 6]


async def test_a_version_that_was_opened_by_its_number_does_not_change(context: Context, name: str) -> None:
    await (await users(context, name)).upsert({"id": [3], "name": ["x"]}, key="id")
    for number in (1, 2):
        old = await open_object(name, version=number)
        for write in (old.insert({"id": [4], "name": ["y"]}), old.upsert({"id": [4], "name": ["y"]}, key="id")):
            with pytest.raises(InputError, match="Open the Object without a version"):
                await write


async def test_a_temporary_object_has_no_versions(context: Context, numbers: Object) -> None:
    with pytest.raises(InputError, match="it has no name"):
        await numbers.upsert([1], key="value")


async def test_nothing_to_put_in_makes_no_version(context: Context, name: str) -> None:
    found = await users(context, name)
    assert await found.upsert(found.where("id > 9"), key="id") == (0, 0)
    assert len(await list_versions(name)) == 1


async def test_many_small_ones_leave_few_pieces(context: Context, name: str) -> None:
    found = await users(context, name)
    for number in range(60):
        await found.upsert({"id": [number % 30], "name": [str(number)]}, key="id")
    pieces = await context.client.rows(
        f"SELECT count() FROM system.parts WHERE active AND database = currentDatabase() AND table = '{found.table}'"
    )
    assert pieces.columns[0][0] < 40
    assert dict(zip(*(await found.data()).values(), strict=True)) == {n: str(30 + n) for n in range(30)}


async def test_a_model_of_a_dictionary_agrees_with_many_writers_at_once(context: Context, name: str) -> None:
    """Each writer has keys of its own beside those of all: its own are as it wrote them last."""
    await users(context, name)

    async def write(writer: int) -> dict[int, str]:
        dice, mine = random.Random(writer), dict[int, str]()
        async with data_context() as own:
            found = await own.open_object(name)
            for step in range(6):
                keys = dice.sample(range(writer * 100, writer * 100 + 5), dice.randrange(1, 4))
                batch = dict.fromkeys(keys, f"{writer}-{step}")
                await found.upsert({"id": [*batch, 1], "name": [*batch.values(), f"{writer}-{step}"]}, key="id")
                mine |= batch
        return mine

    expected = {2: "Bo"}
    for mine in await asyncio.gather(*map(write, range(1, 4))):
        expected |= mine
    found = await (await open_object(name)).data()
    rows = dict(zip(found["id"], found["name"], strict=True))
    assert len(found["id"]) == len(rows)
    assert rows.pop(1).endswith("-5")
    assert rows == expected
    assert (await list_versions(name))[-1].number == 1 + 3 * 6


async def test_the_lineage_of_a_column_goes_on_through_versions(ch_url: str, name: str) -> None:
    async with data_context(oplog=True):
        rows = await create_object_from_value({"id": [1], "price": [2]})
        await rows.materialize(name, incremental_by="id")
        more = await create_object_from_value({"id": [2], "cents": [300]})
        found = await more.select("id", price=col("cents") // 100).materialize(name, incremental_by="id")
        await found.upsert(more.select("id", price=col("cents")), key="id")
        back = await lineage(found, column="price")
        sources = {(edge.source.table, edge.source.column, edge.operation) for edge in back.column_edges}
        assert {
            (rows.table, "price", "incremental"),
            (more.table, "cents", "incremental"),
            (more.table, "cents", "upsert"),
            (f"p_{name}", "price", "rename"),
            (f"p_{name}@1", "price", "incremental"),
            (f"p_{name}@2", "price", "upsert"),
        } <= sources
        assert all(column != "id" for _, column, _ in sources)
