"""What people call inside a `data_context`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import (
    View,
    create_object,
    create_object_from_file,
    create_object_from_value,
    current_context,
    data_context,
    delete_object,
    list_objects,
    open_object,
)
from aaiclick.errors import DataRefused, InputError, NoContext, ObjectNotFound
from tests.support.front_door import local

__all__ = ["local"]


async def test_outside_a_context_one_is_asked_for() -> None:
    with pytest.raises(NoContext, match="data_context"):
        await create_object({"a": int})


async def test_objects_with_a_name_stay_and_are_found(local: Path) -> None:
    async with data_context():
        made = await create_object({"a": int, "b": "Nullable(String)"}, name="orders.2026-01")
        assert await made.insert({"a": [1], "b": [None]}) == 1
        assert await create_object_from_value([1]) is not None
    async with data_context():
        assert await list_objects() == ["orders.2026-01"]
        found = await open_object("orders.2026-01")
        assert found.schema.types == {"a": "Int64", "b": "Nullable(String)"}
        assert await found.data() == {"a": [1], "b": [None]}
        assert await delete_object("orders.2026-01")
        assert not await delete_object("orders.2026-01")
        with pytest.raises(ObjectNotFound, match=r"orders\.2026-01"):
            await open_object("orders.2026-01")


async def test_a_reference_is_opened_too(local: Path) -> None:
    async with data_context():
        made = await create_object_from_value({"a": [3, 1, 2]})
        seen = made.where("a > 1").order_by("a")
        assert isinstance(seen, View)
        again = await open_object(seen.reference())
        assert isinstance(again, View)
        assert await again.data() == {"a": [2, 3]}
        older = {"object_type": "view", "table_id": made.table, "limit": 1, "offset": 1, "order_by": "a"}
        assert await (await open_object(older)).data() == {"a": [2]}
        with pytest.raises(ObjectNotFound, match="gone"):
            await open_object({"object_type": "object", "table": "t1_1_1"})


async def test_a_name_that_is_taken_is_refused(local: Path) -> None:
    async with data_context():
        kept = await create_object_from_value([1], name="a")
        with pytest.raises(DataRefused, match="already exists"):
            await create_object_from_value([2], name="a")
        assert await kept.data() == [1]


@pytest.mark.parametrize("name", ["", "1a", "a b", "a`b", "ä", "a" * 151, "../x", None, 3])
async def test_a_name_that_cannot_be_one_is_refused(local: Path, name: Any) -> None:
    async with data_context():
        if name is None:
            with pytest.raises(InputError):
                await open_object(name)  # type: ignore[call-overload]
        else:
            with pytest.raises(InputError, match="a letter"):
                await create_object({"a": int}, name=name)


async def test_a_context_inside_another_is_the_current_one_until_it_ends(local: Path) -> None:
    async with data_context() as outer:
        rows = await create_object_from_value([1, 2])
        async with data_context() as inner:
            assert await current_context() is inner
            assert await (rows * 2).data() == [2, 4]
        assert await current_context() is outer
        assert await rows.data() == [1, 2]


async def test_a_file_that_is_not_there_is_named(local: Path) -> None:
    async with data_context():
        with pytest.raises(InputError, match="no such file"):
            await create_object_from_file(local / "none.csv")
