"""The log of operations: written in batches, and only where it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.data import col, create_object, create_object_from_value, data_context, list_objects
from aaiclick.data.lineage import lineage
from aaiclick.data.provenance.operation_log import BATCH, SQL_LENGTH_MAX, TABLE, Oplog
from aaiclick.errors import ValueExposed
from aaiclick.telemetry import masks
from tests.support.front_door import local

__all__ = ["local"]


async def test_nothing_is_written_unless_it_was_asked_for(local: Path) -> None:
    async with data_context() as context:
        assert await (await create_object_from_value([1])).count() == 1
        assert (await context.client.rows(f"EXISTS TABLE {TABLE}")).columns == [[0]]


async def test_operations_are_written_when_their_context_ends(local: Path) -> None:
    async with data_context(oplog=True) as context:
        rows = await create_object_from_value({"a": [1, 2]})
        more = await rows.where("a > 1")
        await rows.insert(more)
        names = [rows.table, more.table]
        assert (await context.client.rows(f"EXISTS TABLE {TABLE}")).columns == [[0]]
    async with data_context() as context:
        found = await context.client.rows(f"SELECT operation, result, sources FROM {TABLE} ORDER BY at")
    assert list(zip(*found.columns, strict=True)) == [
        ("create", names[0], []),
        ("materialize", names[1], [names[0]]),
        ("insert", names[0], [names[1]]),
    ]


async def test_they_are_written_a_batch_at_a_time(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with data_context() as context:
        log, sizes = Oplog(context.client, job_id=5, task_id=6), []
        insert = context.client.insert

        async def counted(table: str, data: object, *, token: str | None = None) -> int:
            sizes.append(data.num_rows)  # type: ignore[attr-defined]
            return await insert(table, data, token=token)

        monkeypatch.setattr(context.client, "insert", counted)
        for number in range(BATCH + 3):
            await log.note("made", f"t{number}", ["s"], "x" * (SQL_LENGTH_MAX + 5))
        assert sizes == [BATCH]
        await log.flush()
        await log.flush()
        assert sizes == [BATCH, 3]
        query = f"SELECT count(), any(job_id), any(task_id), max(length(query)) FROM {TABLE}"
        assert (await context.client.rows(query)).columns == [[BATCH + 3], [5], [6], [SQL_LENGTH_MAX + 3]]


async def test_what_is_secret_is_masked_when_it_is_noted_and_when_it_is_shown(local: Path) -> None:
    secret = "it's a \\ canary" + "!" * SQL_LENGTH_MAX
    try:
        async with data_context(oplog=True):
            rows = await create_object_from_value({"a": ["x"]})
            early = await rows.where(col("a") != secret).materialize("early")
            masks.remember([secret])
            late = await rows.where(col("a") != secret).materialize("late")
            masks.forget_all()  # as in a process that does not know it
            [_, noted] = (await lineage(late)).operations
            assert "'***'" in noted.query
            masks.remember([secret])
            [_, shown] = (await lineage(early)).operations
            assert "canary" not in shown.query
    finally:
        masks.forget_all()


async def test_what_is_secret_is_no_name_column_or_type_of_an_object(local: Path) -> None:
    secret = "a_canary_in_names"
    masks.remember([secret])
    try:
        async with data_context() as context:
            rows = await create_object_from_value({"a": [1]})
            for make in (
                lambda: create_object_from_value({secret: [1]}),
                lambda: create_object_from_value([1], name=f"x{secret}"),
                lambda: create_object({"a": f"Enum8('{secret}' = 1)"}),
                lambda: create_object({"a": f"Tuple({secret} Int8)"}),
                lambda: rows.with_columns(**{secret: col("a")}).materialize("kept"),
            ):
                with pytest.raises(ValueExposed):
                    await make()
            found = await context.client.rows("SELECT count() FROM system.tables WHERE name LIKE '%canary%'")
            assert found.columns == [[0]]
            assert await list_objects() == []
    finally:
        masks.forget_all()
