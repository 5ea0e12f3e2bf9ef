"""Objects that are deleted before their time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aaiclick.data import Context, Object, data_context, delete_object
from aaiclick.errors import InputError, StaleObject


async def tables(context: Context) -> set[str]:
    found = await context.client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
    return set(found.columns[0])


async def test_a_temporary_object_is_deleted_before_its_context_ends(context: Context) -> None:
    made = await context.create_object_from_value([1, 2])
    assert (made.scope, made.persistent, made.stale) == ("temporary", False, False)
    assert await delete_object(made)
    assert made.stale
    assert made.table not in await tables(context)
    with pytest.raises(StaleObject):
        await made.data()
    assert not await delete_object(made)
    assert made.table not in context._lifetime.left


async def test_an_object_with_a_name_is_deleted_by_either(context: Context) -> None:
    for what in ("deleted", None):
        made = await context.create_object_from_value([1], name="deleted")
        assert (made.scope, made.persistent, made.stale) == ("global", True, False)
        assert await context.delete_object(what or made)
        assert not await context.delete_object("deleted")


async def test_an_object_is_stale_after_its_context() -> None:
    async with data_context() as context:
        made = await context.create_object_from_value([1])
    assert made.stale
    async with data_context() as context:
        assert not await context.delete_object(made)


async def test_what_others_need_is_not_deleted(context: Context, numbers: Object) -> None:
    wrong: list[Any] = [numbers.limit(1), numbers + 1, 3]
    for what in wrong:
        with pytest.raises(InputError, match="must be an Object, or the name of one"):
            await context.delete_object(what)
    opened = await context.open_reference(numbers.reference())
    assert isinstance(opened, Object)
    for each, said in ((numbers, "refer to it"), (opened, "belongs to another context")):
        with pytest.raises(InputError, match=said):
            await context.delete_object(each)
    await asyncio.sleep(0)
    assert await numbers.count() == 4
