"""Names that end with their context."""

from __future__ import annotations

import pytest

from aaiclick.data import Context, create_object_from_value, data_context, list_objects, open_object
from aaiclick.data.tables.temporary import TemporaryNames
from aaiclick.errors import Conflict, InputError, ObjectNotFound, StaleObject


async def test_a_temporary_name_is_known_in_its_context_alone(road: Context) -> None:
    made = await road.create_object_from_value([1, 2], name="x", scope="temporary")
    assert (made.scope, made.persistent, "x" in await road.list_objects()) == ("temporary", False, False)
    table = made.table
    del made  # it lives as long as the context
    found = await road.open_object("x", scope="temporary")
    assert (found.table, await found.data()) == (table, [1, 2])
    with pytest.raises(ObjectNotFound):
        await road.open_object("x")
    with pytest.raises(Conflict, match="open_object"):
        await road.create_object({"a": int}, name="x", scope="temporary")
    assert await road.delete_object("x", scope="temporary")
    assert not await road.delete_object("x", scope="temporary")
    with pytest.raises(ObjectNotFound, match="data_context"):
        await road.open_object("x", scope="temporary")
    again = await (await road.create_object_from_value([3])).copy("x", scope="temporary")
    assert await again.data() == [3]


async def test_contexts_do_not_see_each_others_names(ch_url: str) -> None:
    async with data_context():
        outer = await create_object_from_value([1], name="x", scope="temporary")
        async with data_context():
            with pytest.raises(ObjectNotFound):
                await open_object("x", scope="temporary")
            inner = await create_object_from_value([2], name="x", scope="temporary")
            assert await (inner + outer.max()).data() == [3]
        assert await (await open_object("x", scope="temporary")).data() == [1]
        assert "x" not in await list_objects()
    assert outer.stale
    assert inner.stale
    with pytest.raises(StaleObject):
        await outer.data()


async def test_a_name_whose_making_failed_is_free(context: Context) -> None:
    with pytest.raises(InputError):
        await context.create_object_from_value([1], fields={"value": "String"}, name="x", scope="temporary")
    query = (await context.create_object_from_value([1])).where("no_such_column > 1")
    with pytest.raises(Exception, match="no_such_column"):
        await query.materialize("x", scope="temporary")
    assert await (await context.create_object_from_value([1], name="x", scope="temporary")).count() == 1


async def test_what_is_no_name_is_refused(context: Context) -> None:
    for wrong in ("", "a b", "1", 5, "x" * 200):
        with pytest.raises(InputError, match="name"):
            await context.create_object({"a": int}, name=wrong, scope="temporary")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="name"):
            TemporaryNames().keeper_of(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="it must be global, job or temporary"):
        await context.create_object({"a": int}, name="x", scope="Temporary")  # type: ignore[arg-type]
