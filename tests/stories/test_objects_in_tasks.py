"""Objects go from task to task: in `job_test` on every database, and through workers with children and a gateway."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aaiclick.config import reset_settings
from aaiclick.data import create_object_from_value, data_context
from aaiclick.data.gateway import serve_directory
from aaiclick.errors import Conflict
from aaiclick.orchestration import ajob_test, get_job_result, worker_main_loop
from tests.orchestration import data_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

SMALL = {"kind": "View", "data": {"k": [0, 1, 2, 0, 1], "v": [3, 4, 5, 6, 7]}}
TOTALS = {"kind": "Object", "data": {"k": [0, 1, 2], "v": [9, 11, 5]}}


async def result_of(job: Any) -> Any:
    ended = await ajob_test(job)
    assert ended.status == "completed", ended.error
    return await get_job_result(ended.id)


async def tables() -> list[str]:
    async with data_context() as context:
        found = await context.client.rows("SELECT name FROM system.tables WHERE database = currentDatabase()")
        return sorted(found.columns[0])


async def test_objects_and_views_are_handed_on_by_reference(local: Path, state: str) -> None:
    assert await result_of(await flows.pipeline.submit(8)) == [TOTALS, SMALL]


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        (lambda: flows.annotated.submit(), ["Object", 6, None]),
        (lambda: flows.large.submit(200_000), ["Object", 19_999_900_000, None]),
        (lambda: flows.frames.submit(), {"kind": "Object", "data": {"x": [1, 2]}}),
        (lambda: flows.packed.submit(), [4, [0, 1, 2, 3], 3]),
        (lambda: flows.in_context.submit(), {"kind": "Object", "data": [7]}),
        (lambda: flows.named.submit(), [4, 5]),
        (lambda: flows.lazy.submit(), {"kind": "Object", "data": [0, 2, 4]}),
    ],
)
async def test_what_travels(local: Path, flow: Any, expected: Any) -> None:
    assert await result_of(await flow()) == expected


@pytest.mark.parametrize("zone", [None, ZoneInfo("Europe/Rome")], ids=str)
async def test_times_are_with_or_without_a_zone_at_every_door(local: Path, zone: ZoneInfo | None) -> None:
    at = datetime(2026, 3, 29, 3 if zone else 1, 30, 0, 5, tzinfo=zone)  # at two, Rome puts its clocks forward
    hour = timedelta(hours=1)
    given, rows, types, later, batch = await result_of(await flows.timely.submit(at))
    kind = "DateTime64(6, 'Europe/Rome')" if zone else "DateTime64(6)"
    assert (given, rows, types) == (at, [at, at + hour], {"value": kind})
    assert (later, batch) == ([at + hour, at + 2 * hour], {"t": [at, at + hour]})
    assert [each.tzinfo for each in (given, *rows, *later, *batch["t"])] == [zone] * 7


async def test_a_workflow_with_a_key_may_be_given_an_object(local: Path) -> None:
    """The same Object is the same request; another one is another, also with the same rows."""
    keyed = flows.given_rows.options(key="once")
    async with data_context():
        rows, other = [await create_object_from_value({"k": [1, 2]}) for _ in range(2)]
        first = await keyed.submit(rows)
        assert (await keyed.submit(rows)).id == first.id
        for given in (other, rows.where("k > 1")):
            with pytest.raises(Conflict, match="Use another key"):
                await keyed.submit(given)
    assert await result_of(first) == {"kind": "Object", "data": {"k": [1, 2]}}


async def test_an_object_given_at_submit_is_opened_in_the_task(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value({"a": [1, 2, 3]})
        assert await result_of(await flows.given.submit(rows)) == {"kind": "Object", "data": {"a": [1, 2, 3]}}
        seen = rows.where("a > 1").order_by("a", descending=True)
        assert await result_of(await flows.given.submit(seen)) == {"kind": "View", "data": {"a": [3, 2]}}


async def test_tables_that_a_run_did_not_return_are_gone(local: Path) -> None:
    ended = await ajob_test(await flows.failing.submit())
    assert ended.status == "failed"
    assert await tables() == []


async def test_a_child_reaches_the_engine_that_its_worker_lets_start(local: Path) -> None:
    job = await flows.pipeline.submit(8)
    async with asyncio.timeout(100):
        await worker_main_loop(executor="process", concurrency=2, max_tasks=5, control=False)
    assert await get_job_result(job.id) == [TOTALS, SMALL]


@pytest.mark.parametrize("executor", ["inline", "process"])
async def test_a_large_list_becomes_an_object_for_whoever_wants_one_wherever_the_body_ran(
    local: Path, executor: str
) -> None:
    for flow in (flows.large, flows.large_at_once):
        job = await flow.submit(200_000)
        async with asyncio.timeout(100):
            await worker_main_loop(executor=executor, concurrency=2, max_tasks=2, control=False)
        assert await get_job_result(job.id) == ["Object", 19_999_900_000, None]


@pytest.mark.parametrize("executor", ["inline", "process"])
async def test_a_plain_function_makes_objects_of_its_run_in_a_loop_of_its_own(local: Path, executor: str) -> None:
    job = await flows.in_a_loop_of_its_own.submit()
    async with asyncio.timeout(100):
        await worker_main_loop(executor=executor, concurrency=2, max_tasks=2, control=False)
    assert await get_job_result(job.id) == {"kind": "Object", "data": [7]}


@pytest.mark.parametrize("executor", ["inline", "process"])
async def test_with_the_address_of_a_server(
    local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    """A ClickHouse server cannot be had here: the gateway speaks its protocol."""
    serving = await asyncio.to_thread(serve_directory, tmp_path / "served", port=0)
    assert serving is not None
    try:
        where = serving.endpoint
        address = where.tcp.removeprefix("http://")
        monkeypatch.setenv("AAICLICK_CH_URL", f"clickhouse://{where.user}:{where.password}@{address}/default")
        reset_settings()
        job = await flows.pipeline.submit(8)
        async with asyncio.timeout(100):
            await worker_main_loop(executor=executor, concurrency=2, max_tasks=5, control=False)
        assert await get_job_result(job.id) == [TOTALS, SMALL]
    finally:
        await asyncio.to_thread(serving.close)
