"""`map`, `filter`, `foreach` and `reduce` in `job_test`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from aaiclick.data import create_object_from_value, data_context
from aaiclick.orchestration import ajob_test, get_groups_for_job, get_job_result, get_tasks_for_job
from tests.orchestration import operator_flows as flows
from tests.support.front_door import local

__all__ = ["local"]

HERE = "tests.orchestration.operator_flows."


async def result_of(job: Any) -> Any:
    ended = await ajob_test(job)
    assert ended.status == "completed", ended.error
    return await get_job_result(ended.id)


async def applied(verb: str, callback: str, n: int, **options: Any) -> Any:
    return await result_of(await flows.apply_one.submit(verb, HERE + callback, n, options))


async def error_of(verb: str, callback: str, n: int, **options: Any) -> str:
    ended = await ajob_test(await flows.apply_one.submit(verb, HERE + callback, n, options))
    assert ended.status == "failed"
    return "\n".join(task.error or "" for task in await get_tasks_for_job(ended.id))


@pytest.mark.parametrize(
    ("callback", "options"),
    [
        ("double", {}),
        ("double", {"partition": 3}),
        ("double", {"partition": 1}),
        ("untyped", {"partition": 4}),
        ("later", {"partition": 4}),
        ("marked", {"partition": 4}),
        ("scaled", {"partition": 4, "args": [2]}),
        ("scaled", {"partition": 4, "kwargs": {"by": 1, "plus": 0}, "fields": "Int64"}),
        ("twice", {"partition": 4, "batch": True}),
    ],
)
async def test_map(local: Path, callback: str, options: dict[str, Any]) -> None:
    factor = 1 if "kwargs" in options else 2
    found = await applied("map", callback, 10, **options)
    assert found == {"data": [x * factor for x in range(10)], "types": {"value": "Int64"}}


async def test_functions_are_named_by_themselves(local: Path) -> None:
    doubled = {"data": [0, 2, 4, 6, 8, 10], "types": {"value": "Int64"}}
    assert await result_of(await flows.by_function.submit(6)) == [doubled] * 3


async def test_a_row_of_several_columns_is_a_dict(local: Path) -> None:
    assert (await result_of(await flows.names.submit()))["data"] == ["Ada Lovelace", "Alan Turing"]


@pytest.mark.parametrize(
    ("callback", "options", "data", "types"),
    [
        ("widened", {"partition": 2}, {"x": [0, 1, 2], "square": [0, 1, 4]}, {"x": "Int64", "square": "Int64"}),
        ("pair", {"partition": 2}, {"x": [0, 1, 2], "half": [0.0, 0.5, 1.0]}, {"x": "Int64", "half": "Float64"}),
        ("double", {"fields": "UInt8"}, [0, 2, 4], {"value": "UInt8"}),
        ("double", {"fields": {"value": "Nullable(Float64)"}}, [0.0, 2.0, 4.0], {"value": "Nullable(Float64)"}),
        (
            "widened",
            {"fields": {"square": "Int8"}},
            {"x": [0, 1, 2], "square": [0, 1, 4]},
            {"x": "Int64", "square": "Int8"},
        ),
    ],
)
async def test_the_output_has_the_callbacks_type(
    local: Path, callback: str, options: dict[str, Any], data: Any, types: dict[str, str]
) -> None:
    assert await applied("map", callback, 3, **options) == {"data": data, "types": types}


@pytest.mark.parametrize(
    ("callback", "expected", "kind"),
    [
        ("mixed", [0.0, 1.0, 2.0, 3.0, 4.0, 5.5, 6.5, 7.5], "Float64"),
        ("sparse", [None, None, None, None, None, 5, 6, 7], "Nullable(Int64)"),
    ],
)
async def test_parts_of_other_types_are_united(local: Path, callback: str, expected: list[Any], kind: str) -> None:
    for partition in (1, 2, 5, 8):
        found = await applied("map", callback, 8, partition=partition)
        assert found == {"data": expected, "types": {"value": kind}}


async def test_types_that_no_type_holds_are_named(local: Path) -> None:
    assert "Int64, String" in await error_of("map", "clashing", 10, partition=5)
    assert "row 5" in await error_of("map", "clashing", 10)
    assert "nothing but None" in await error_of("map", "never", 10, partition=3)


async def test_an_error_is_told_with_its_row(local: Path) -> None:
    ended = await ajob_test(await flows.apply_to.submit("map", HERE + "full_name", ["a", "b"]))
    assert ended.status == "failed"
    assert "string indices" in (ended.error or "")


@pytest.mark.parametrize(
    ("callback", "options"),
    [
        ("is_even", {}),
        ("is_even", {"partition": 3}),
        ("even_mask", {"partition": 3, "batch": True}),
        ("even_rows", {"partition": 3, "batch": True}),
    ],
)
async def test_filter(local: Path, callback: str, options: dict[str, Any]) -> None:
    found = await applied("filter", callback, 11, **options)
    assert found == {"data": [0, 2, 4, 6, 8, 10], "types": {"value": "Int64"}}


async def test_filter_keeps_the_schema_even_of_nothing(local: Path) -> None:
    async with data_context():
        fields = {"a": "UInt8", "b": "LowCardinality(String)"}
        rows = await create_object_from_value({"a": [1, 2, 3], "b": ["x", "y", "z"]}, fields=fields)
        kept = await result_of(await flows.apply_to.submit("filter", HERE + "has_x", rows, {"partition": 1}))
        assert kept == {"data": {"a": [1], "b": ["x"]}, "types": fields}
        none = await result_of(await flows.apply_to.submit("filter", HERE + "never", rows, {"partition": 2}))
        assert none == {"data": {"a": [], "b": []}, "types": fields}
        all_of_them = await result_of(await flows.apply_to.submit("filter", HERE + "always", rows))
        assert all_of_them["data"] == {"a": [1, 2, 3], "b": ["x", "y", "z"]}


async def test_foreach_calls_for_every_row_and_gives_nothing(local: Path, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    assert await result_of(await flows.each_row.submit(10, str(marks))) == [None]
    assert sorted(int(mark.name) for mark in marks.iterdir()) == list(range(10))


async def test_operators_follow_each_other(local: Path) -> None:
    n = 7
    doubled, even, summed = await result_of(await flows.chain.submit(n))
    assert doubled["data"] == [x * 2 for x in range(n)]
    assert even["data"] == [y for x in range(n) if (y := x * 6 + 1) % 2 == 0]
    assert summed["data"] == sum(x * 2 for x in range(n))


async def test_an_operator_in_a_running_task(local: Path) -> None:
    assert (await result_of(await flows.inside.submit(7)))["data"] == [x * 2 for x in range(7)]


async def test_a_job_may_return_an_operators_group(local: Path) -> None:
    found = await result_of(await flows.returned_group.submit(7))
    assert found["object_type"] == "object"


async def test_values_become_objects(local: Path) -> None:
    assert (await result_of(await flows.of_plain_values.submit()))["data"] == [10]
    assert (await result_of(await flows.apply_to.submit("map", HERE + "double", [1, 2])))["data"] == [2, 4]


async def test_a_view_is_read_as_it_is(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value({"value": list(range(10)), "other": list(range(10))})
        view = rows.where("value > 2").order_by("value", descending=True).limit(3)["value"]
        found = await result_of(await flows.apply_to.submit("map", HERE + "double", view, {"partition": 2}))
        assert found["data"] == [18, 16, 14]


@pytest.mark.parametrize(
    ("callback", "options", "data", "types"),
    [
        ("double", {}, [], {"value": "Int64"}),
        ("untyped", {}, [], {"value": "Int64"}),
        ("pair", {}, {"x": [], "half": []}, {"x": "Int64", "half": "Float64"}),
        ("untyped", {"fields": "String"}, [], {"value": "String"}),
        ("twice", {"batch": True}, [], {"value": "Int64"}),
    ],
)
async def test_map_of_nothing_is_an_empty_object(
    local: Path, callback: str, options: dict[str, Any], data: Any, types: dict[str, str]
) -> None:
    assert await applied("map", callback, 0, **options) == {"data": data, "types": types}


async def test_of_an_empty_list_comes_what_is_known_without_its_type(local: Path) -> None:
    """A task that found nothing may say so: no Object can be made of that, for the type of its values is unknown."""
    mapped = await result_of(await flows.apply_to.submit("map", HERE + "double", []))
    assert mapped == {"data": [], "types": {"value": "Int64"}}
    assert await result_of(await flows.each_of.submit([])) == [None]
    for verb, callback, said in (
        ("reduce", "total", "TypeError: reduce() of empty sequence with no initial value"),
        ("map", "untyped", "the type of its values is unknown"),
        ("filter", "is_even", "the type of its values is unknown"),
    ):
        ended = await ajob_test(await flows.apply_to.submit(verb, HERE + callback, []))
        assert said in (ended.error or "")


async def test_filter_and_foreach_of_nothing(local: Path, tmp_path: Path) -> None:
    assert await applied("filter", "is_even", 0) == {"data": [], "types": {"value": "Int64"}}
    assert await result_of(await flows.each_row.submit(0, str(tmp_path))) == [None]


async def test_random_sizes_and_partitions(local: Path) -> None:
    draw = random.Random(11)
    for _ in range(6):
        count, size = draw.randrange(1, 400), draw.randrange(1, 90)
        values = [draw.randrange(20) for _ in range(count)]
        found = await result_of(
            await flows.apply_to.submit("map", HERE + "double", values, {"partition": max(size, count // 10)})
        )
        assert Counter(found["data"]) == Counter(x * 2 for x in values)


async def test_the_tasks_of_an_operator_are_in_its_group(local: Path) -> None:
    ended = await ajob_test(await flows.apply_one.submit("map", HERE + "double", 10, {"partition": 4}))
    names = {group.id: group.name for group in await get_groups_for_job(ended.id)}
    tasks = [(task.name, names.get(task.group_id or 0)) for task in await get_tasks_for_job(ended.id)]
    assert sorted(tasks, key=str) == [
        ("collect", "map double"),
        ("expand", "map double"),
        ("numbers", None),
        ("part 0", "parts"),
        ("part 1", "parts"),
        ("part 2", "parts"),
        ("read", None),
    ]


async def test_a_callback_marked_as_a_task_gives_its_options_to_the_parts(local: Path, tmp_path: Path) -> None:
    job = await flows.retried.submit(10, str(tmp_path))
    assert (await result_of(job))["data"] == [x * 2 for x in range(10)]
    parts = [task for task in await get_tasks_for_job(job.id) if task.name.startswith("part")]
    assert [(task.attempt, task.timeout_s) for task in parts] == [(0, 50), (1, 50), (0, 50)]


async def test_a_collector_joins_what_tasks_give(local: Path) -> None:
    assert (await result_of(await flows.collector.submit(3)))["data"] == [0, 1, 2, 0, 1]


async def test_a_collector_of_so_many_gathers_those_that_were_made_last(local: Path) -> None:
    assert await result_of(await flows.chunks.submit(7, 3)) == [3, 3, 1]
    assert await result_of(await flows.chunks.submit(0, 3)) == []
