"""Versions at once, whoever comes between and whatever is lost: one after the other, each wholly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.data import Context, Object, data_context, list_versions, open_object, rollback
from aaiclick.data.tables.lifetimes import drop
from aaiclick.data.tables.table_names import persistent_table
from aaiclick.data.versions.catalog import versions_of
from aaiclick.errors import Conflict, DataRefused, InputError, ObjectNotFound

Intrude = Callable[..., Any]


async def made(context: Context, name: str) -> Object:
    """An Object with versions 1 and 2, of one row and of two."""
    rows = await context.create_object_from_value({"id": [1], "v": ["a"]}, name=name)
    await rows.upsert({"id": [2], "v": ["b"]}, key="id")
    return rows


async def content(name: str) -> dict[int, str]:
    found = await (await open_object(name)).data()
    assert len(set(found["id"])) == len(found["id"])
    return dict(zip(found["id"], found["v"], strict=True))


async def leftovers(context: Context, name: str) -> list[str]:
    found = await context.client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
    kept = {each.table for each in await versions_of(context.client, persistent_table(name, "global", None))}
    return [each for each in found.columns[0] if name in each and each not in kept]


@pytest.mark.parametrize("words", ["RENAME TABLE `c", "ALTER TABLE `c", "CREATE TABLE `c", "DELETE FROM"])
async def test_who_is_quicker_is_not_overwritten(context: Context, name: str, intruding: Intrude, words: str) -> None:
    mine = await made(context, name)

    async def other() -> None:
        async with data_context() as own:
            theirs = await own.open_object(name)
            await theirs.upsert({"id": [1, 3], "v": ["theirs", "theirs"]}, key="id")

    with intruding(words, other) as between:
        await mine.upsert({"id": [2, 4], "v": ["mine", "mine"]}, key="id")
    assert between.done == 1
    assert await content(name) == {1: "theirs", 2: "mine", 3: "theirs", 4: "mine"}
    assert [each.number for each in await list_versions(name)] == [1, 2, 3, 4]


@pytest.mark.parametrize("when", ["lost", "unsent"])
@pytest.mark.parametrize(
    "words",
    ["CREATE TABLE `c", "INSERT INTO `c", "DELETE FROM", "ALTER TABLE `c", "RENAME TABLE `c", "RENAME TABLE `p_"],
)
async def test_whatever_answer_is_lost_rows_are_there_once(
    context: Context, name: str, intruding: Intrude, words: str, when: str
) -> None:
    async def nothing() -> None:
        """The engine is killed before the statement came."""

    rows = await context.create_object_from_value({"id": [1, 2], "v": ["a", "a"]}, name=name)
    more = await context.create_object_from_value({"id": [2, 3], "v": ["b", "b"]})
    with intruding(words, nothing, when) as between:
        assert await rows.upsert(more, key="id") == (1, 1)
        assert await rows.insert(more.where("id = 3").with_columns(id=7)) == 1
    assert between.done == 1
    assert await content(name) == {1: "a", 2: "b", 3: "b", 7: "b"}
    assert [each.number for each in await list_versions(name)] == [1, 2, 3]


async def test_two_that_replace_all_of_it_at_once_do_not_mix(context: Context, name: str) -> None:
    async def replace(text: str) -> None:
        async with data_context() as own:
            rows = await own.create_object_from_value({"id": list(range(50)), "v": [text] * 50})
            await rows.materialize(name, full_refresh=True)

    await asyncio.gather(*(replace(text) for text in "abcd"))
    assert len(set((await content(name)).values())) == 1
    found = await list_versions(name)
    assert [(each.number, each.rows) for each in found] == [(number, 50) for number in (1, 2, 3, 4)]


async def test_readers_see_one_version_wholly(context: Context, name: str) -> None:
    rows = await context.create_object_from_value({"id": list(range(30)), "v": ["0"] * 30})
    await rows.materialize(name, full_refresh=True, keep=2)
    last = asyncio.Event()

    async def read() -> None:
        while not last.is_set():
            try:
                found = await content(name)
            except ObjectNotFound:  # opened, and two newer ones came before it was read
                continue
            assert sorted(found) == list(range(30))
            assert len(set(found.values())) == 1

    async def write() -> None:
        for number in range(8):
            await rows.with_columns(v=str(number)).materialize(name, full_refresh=True)
        last.set()

    await asyncio.gather(read(), read(), write())


async def test_an_insert_that_finds_versions_goes_into_the_latest(context: Context, name: str) -> None:
    early = await context.create_object_from_value({"id": [1], "v": ["a"]}, name=name)
    late = await open_object(name)
    await early.upsert({"id": [1], "v": ["b"]}, key="id")
    assert await late.insert({"id": [2], "v": ["c"]}) == 1
    assert await content(name) == {1: "b", 2: "c"}
    assert await late.data() == {"id": [1, 2], "v": ["b", "c"]}


async def test_inserts_at_the_moment_of_the_first_version_are_not_lost(context: Context, name: str) -> None:
    first = await context.create_object({"id": "Int64", "v": "String"}, name=name)

    async def insert(number: int) -> None:
        async with data_context() as own:
            rows = await own.open_object(name)
            for at in range(5):
                await rows.insert({"id": [number * 100 + at], "v": ["x"]}, token=f"{number}-{at}")

    await asyncio.gather(*map(insert, range(4)), first.upsert({"id": [-1], "v": ["y"]}, key="id"))
    expected = {number * 100 + at: "x" for number in range(4) for at in range(5)}
    assert await content(name) == {**expected, -1: "y"}


async def test_who_comes_late_to_a_number_that_is_free_again_is_not_lost(
    context: Context, name: str, intruding: Intrude
) -> None:
    """Meanwhile so many versions were made that the next number, and the version it came from, are gone."""
    mine = await made(context, name)

    async def others() -> None:
        async with data_context() as own:
            theirs = await own.open_object(name)
            for number in range(4):
                await theirs.upsert({"id": [3], "v": [str(number)]}, key="id", keep=2)

    with intruding("RENAME TABLE `c", others):
        await mine.upsert({"id": [4], "v": ["mine"]}, key="id")
    assert await content(name) == {1: "a", 2: "b", 3: "3", 4: "mine"}
    assert [each.number for each in await list_versions(name)] == [6, 7]
    assert await leftovers(context, name) == []


async def test_what_was_deleted_meanwhile_does_not_come_back(context: Context, name: str, intruding: Intrude) -> None:
    mine = await made(context, name)

    async def delete() -> None:
        async with data_context() as own:
            await own.delete_object(name)

    with intruding("RENAME TABLE `c", delete), pytest.raises(ObjectNotFound):
        await mine.upsert({"id": [4], "v": ["mine"]}, key="id")
    assert name not in await context.list_objects()


async def test_a_plain_object_of_a_name_with_versions_is_refused_and_gone(context: Context, name: str) -> None:
    await made(context, name)
    with pytest.raises(DataRefused, match="already exists, in versions"):
        await context.create_object_from_value([1], name=name)
    assert await content(name) == {1: "a", 2: "b"}
    assert await leftovers(context, name) == []


async def test_a_table_of_that_name_that_was_left_counts_for_nothing(context: Context, name: str) -> None:
    """Who made it died before it could look whether there are versions."""
    await made(context, name)
    await context.client.command(f"CREATE TABLE p_{name} (x Int8) ENGINE = MergeTree ORDER BY tuple()")
    assert await content(name) == {1: "a", 2: "b"}
    await (await open_object(name)).upsert({"id": [3], "v": ["c"]}, key="id")
    assert await content(name) == {1: "a", 2: "b", 3: "c"}
    await drop(context.client, f"p_{name}")


async def test_so_many_versions_are_kept_as_was_said_last(context: Context, name: str) -> None:
    rows = await made(context, name)

    async def numbers() -> list[int]:
        return [each.number for each in await list_versions(name)]

    for value in "cdef":
        await rows.upsert({"id": [1], "v": [value]}, key="id")
    assert await numbers() == [2, 3, 4, 5, 6]
    await rows.upsert({"id": [1], "v": ["g"]}, key="id", keep=2)
    await rows.upsert({"id": [1], "v": ["h"]}, key="id")
    assert await numbers() == [7, 8]
    with pytest.raises(ObjectNotFound, match="Its versions are 7, 8"):
        await open_object(name, version=2)


async def test_a_version_that_is_gone_says_so(context: Context, name: str) -> None:
    rows = await made(context, name)
    old = await open_object(name)
    for value in "cd":
        await rows.upsert({"id": [1], "v": [value]}, key="id", keep=1)
    with pytest.raises(ObjectNotFound, match="open the Object again"):
        await old.data()


async def test_rollback_is_a_version_too(context: Context, name: str) -> None:
    await made(context, name)
    back = await rollback(name, 1)
    assert await back.data() == {"id": [1], "v": ["a"]}
    assert await content(name) == {1: "a"}
    assert [each.operation for each in await list_versions(name)] == ["create", "upsert", "rollback"]
    again = await rollback(name, 3)
    assert again.table == back.table
    with pytest.raises(ObjectNotFound, match="version 9"):
        await rollback(name, 9)
    with pytest.raises(ObjectNotFound):
        await rollback("nothing_of_that_name", 1)
    with pytest.raises(InputError, match="counted from 1"):
        await rollback(name, 0)


async def test_who_is_always_too_late_is_told(context: Context, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aaiclick.data.versions.publishing.TRIES_MAX", 0)
    rows = await context.create_object_from_value({"id": [1]}, name=name)
    with pytest.raises(Conflict, match="other writers published versions"):
        await rows.upsert({"id": [2]}, key="id")


async def test_the_tables_on_the_way_end_with_their_context(context: Context, name: str) -> None:
    async with data_context() as own:
        rows = await own.create_object_from_value({"id": [1]}, name=name)
        await rows.upsert({"id": [2]}, key="id")
        prefix = own._lifetime.prefix
    found = await context.client.rows(f"SELECT name FROM system.tables WHERE startsWith(name, '{prefix}')")
    assert found.columns[0] == []
