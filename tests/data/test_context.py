"""Contexts: nested, on several threads and loops, and what they make and find."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

from aaiclick.data import Context, Object, Schema, View, data_context
from aaiclick.errors import DataRefused, InputError, ObjectNotFound, StaleObject


async def test_an_empty_object_has_its_columns(context: Context) -> None:
    made = await context.create_object({"a": int, "b": "Nullable(String)"})
    assert await made.data() == {"a": [], "b": []}
    assert await made.count() == 0
    ordered = await context.create_object(Schema.from_fields({"value": "Int64"}, "list"), order=True)
    assert (ordered.shape, ordered.schema.ordered) == ("list", True)
    assert await ordered.data() == []


async def test_objects_of_an_outer_context_may_be_used_in_an_inner_one(context: Context, numbers: Object) -> None:
    async with data_context() as inner:
        of_outer = await (numbers + 1)
        of_inner = await inner.create_object_from_value(10)
        assert await (numbers + of_inner).data() == [11, 12, 13, 14]
    assert await of_outer.data() == [2, 3, 4, 5]
    with pytest.raises(StaleObject):
        await of_inner.data()
    with pytest.raises(StaleObject, match="The table c"):
        await (numbers + of_inner).data()


async def test_a_name_stays_and_is_taken_once(context: Context) -> None:
    made = await context.create_object_from_value([1], name="context_name")
    try:
        async with data_context() as other:
            found = await other.open_object("context_name")
            assert await found.data() == [1]
            await found.insert([2])
        with pytest.raises(DataRefused, match="code 57"):
            await context.create_object_from_value([1], name="context_name")
        assert await made.data() == [1, 2]
    finally:
        await context.client.command(f"DROP TABLE {made.table} SYNC")
    with pytest.raises(ObjectNotFound, match="context_name"):
        await context.open_object("context_name")


async def test_a_job_has_names_of_its_own(context: Context) -> None:
    with pytest.raises(InputError, match="it is not called inside a job"):
        await context.open_object("own", scope="job")
    context.job_id = 7
    made = await context.create_object_from_value([7], name="own", scope="job")
    assert made.table == "j7_own"
    assert await (await context.open_object("own", scope="job")).data() == [7]
    with pytest.raises(ObjectNotFound):
        await context.open_object("own")
    await context.client.command("DROP TABLE j7_own SYNC")


async def test_a_frame_as_a_value_is_a_new_object(context: Context, numbers: Object) -> None:
    made = await context.create_object_from_value(numbers * 2)
    assert await made.data() == [2, 4, 6, 8]


async def test_several_contexts_open_at_once(ch_url: str) -> None:
    async def one(number: int) -> Any:
        async with data_context() as context:
            return await ((await context.create_object_from_value([number])) * 2).data()

    assert await asyncio.gather(*(one(number) for number in range(8))) == [[2 * number] for number in range(8)]


def test_several_threads_with_loops_of_their_own_share_one_engine(ch_url: str) -> None:
    found: dict[int, Any] = {}

    async def one(number: int) -> None:
        async with data_context() as context:
            given = await context.create_object_from_value(list(range(number)))
            found[number] = await (given + 1).sum().data()

    threads = [threading.Thread(target=lambda n=number: asyncio.run(one(n))) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: number * (number + 1) // 2 for number in range(1, 7)}


def test_an_object_may_be_asked_from_another_loop(ch_url: str) -> None:
    async def main() -> Any:
        async with data_context() as context:
            given = await context.create_object_from_value([1, 2])
            return await asyncio.to_thread(lambda: asyncio.run((given + 1).data()))

    assert asyncio.run(main()) == [2, 3]


async def test_many_references_are_opened_at_once(context: Context, numbers: Object) -> None:
    texts = await context.create_object_from_value({"a": ["x", "y"], "b": [1, 2]})
    wanted = [
        numbers.reference(),
        cast("View", texts.where("b > 1")).reference(),
        numbers.reference(),
        texts["a"].reference(),
    ]
    found = await context.open_references(wanted)
    assert [await each.data() for each in found] == [[1, 2, 3, 4], {"a": ["y"], "b": [2]}, [1, 2, 3, 4], ["x", "y"]]
    assert await context.open_references([]) == []
    with pytest.raises(ObjectNotFound, match="t_gone"):
        await context.open_references([numbers.reference(), {"object_type": "object", "table": "t_gone"}])


async def test_a_scope_without_a_name_is_refused(context: Context) -> None:
    made = await context.create_object_from_value([1])
    with pytest.raises(InputError, match="scope"):
        await context.create_object({"a": "Int64"}, scope="job")
    with pytest.raises(InputError, match="scope"):
        await context.create_object_from_value([1], scope="job")
    with pytest.raises(InputError, match="scope"):
        await made.materialize(scope="job")


async def test_rows_that_are_added_to_an_ordered_table_of_a_query_come_last(context: Context) -> None:
    made = await (await context.create_object_from_value([1, 2], order=True)).copy()
    await made.insert([5, 4])
    assert await made.data() == [1, 2, 5, 4]
