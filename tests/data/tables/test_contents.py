"""What a table contains is told by a digest, and any change of it by another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.data.tables.contents import contents_of


@pytest.fixture(autouse=True)
def _local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path))
    reset_settings()


async def test_every_insert_changes_it_and_nothing_else_does() -> None:
    async with data_context() as context:
        numbers = await create_object_from_value({"n": [1, 2]}, name="numbers")
        same = await create_object_from_value({"n": [1, 2]}, name="others")
        first = await contents_of(context.client, [numbers.table, same.table])
        assert len(set(first.values())) == 2, "another table may be changed by itself"
        assert await contents_of(context.client, [numbers.table, same.table]) == first
        await numbers.insert({"n": [3]})
        second = await contents_of(context.client, [numbers.table, same.table])
        assert second[numbers.table] != first[numbers.table]
        assert second[same.table] == first[same.table]


async def test_what_is_not_there_or_has_no_parts_is_left_out() -> None:
    async with data_context() as context:
        await context.client.command("CREATE TABLE in_memory (n Int64) ENGINE = Memory")
        assert await contents_of(context.client, ["nothing", "in_memory"]) == {}
        assert await contents_of(context.client, []) == {}
        await context.client.command("DROP TABLE in_memory")
