"""`reduce`: layers of partitions, until one row is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.orchestration import ajob_test, get_groups_for_job, get_tasks_for_job
from tests.orchestration import operator_flows as flows
from tests.orchestration.test_operators import HERE, applied, error_of, local, result_of

__all__ = ["local"]


@pytest.mark.parametrize(("n", "partition"), [(1, 2), (2, 2), (5, 2), (8, 2), (9, 3), (10, 100), (10, None)])
async def test_reduce(local: Path, n: int, partition: int | None) -> None:
    found = await applied("reduce", "total", n, partition=partition)
    assert found == {"data": sum(range(n)), "types": {"value": "Int64"}}


async def test_layers_are_groups_within_the_operators_group(local: Path) -> None:
    ended = await ajob_test(await flows.apply_one.submit("reduce", HERE + "total", 9, {"partition": 3}))
    groups = await get_groups_for_job(ended.id)
    names = {group.id: group.name for group in groups}
    assert sorted((group.name, names.get(group.parent_group_id or 0)) for group in groups) == [
        ("layer 0", "reduce total"),
        ("layer 1", "reduce total"),
        ("reduce total", None),
    ]
    tasks = await get_tasks_for_job(ended.id)
    assert [names[task.group_id] for task in tasks if task.group_id] == ["reduce total", *["layer 0"] * 3, "layer 1"]


async def test_reduce_of_nothing_is_a_type_error(local: Path) -> None:
    assert "TypeError: reduce() of empty sequence with no initial value" in await error_of("reduce", "total", 0)


@pytest.mark.parametrize(("callback", "rows"), [("silent", 0), ("talkative", 2)])
async def test_exactly_one_row_is_wanted_and_it_is_not_tried_again(
    local: Path, monkeypatch: pytest.MonkeyPatch, callback: str, rows: int
) -> None:
    monkeypatch.setenv("WORKER_MAX_RETRIES", "3")
    reset_settings()
    ended = await ajob_test(await flows.apply_one.submit("reduce", HERE + callback, 4))
    assert f"{callback} cannot be run: it wrote {rows} rows to its output" in (ended.error or "")
    failed = [task for task in await get_tasks_for_job(ended.id) if task.status == "failed"]
    assert [(task.name, task.attempt, task.max_retries) for task in failed] == [("part 0", 1, 3)]


async def test_rows_of_several_columns_with_arguments(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value({"n": list(range(10)), "w": [0] * 10})
        options: dict[str, Any] = {"partition": 4, "args": [7], "kwargs": {"plus": 1}}
        found = await result_of(await flows.apply_to.submit("reduce", HERE + "weighted", rows, options))
        assert found == {"data": {"n": 45, "w": 8}, "types": {"n": "Int64", "w": "Int64"}}


@pytest.mark.parametrize("n", [3, 10])
async def test_the_output_may_have_other_columns(local: Path, n: int) -> None:
    found = await applied("reduce", "counting", n, partition=4, fields={"n": "UInt64"})
    assert found == {"data": {"n": n}, "types": {"n": "UInt64"}}


async def test_a_partition_looks_the_same_in_every_layer(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value({"a": list(range(9))})
        found = await result_of(await flows.apply_to.submit("reduce", HERE + "of_table", rows, {"partition": 3}))
        assert found["data"] == {"a": 36}
