"""Workflows that hand Objects from task to task."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from aaiclick.data import Object, View, create_object_from_value, data_context, open_object
from aaiclick.orchestration import TaskResult, job, task
from aaiclick.orchestration import map as map_rows


@task
async def make(n: int) -> Any:
    return await create_object_from_value({"k": [i % 3 for i in range(n)], "v": list(range(n))})


@task
async def narrow(rows: Object) -> Any:
    return rows.where("v > 2")


@task
async def total(rows: Object) -> Any:
    return rows.group_by("k").sum("v").order_by("k")


@task
async def read(rows: Any) -> Any:
    return {"kind": type(rows).__name__, "data": await rows.data()}


@task
def plain() -> list[int]:
    return [1, 2, 3]


@task
async def wants(rows: Object, view: View | None = None) -> Any:
    return [type(rows).__name__, await rows.sum().data(), view]


@task
async def many(n: int) -> list[int]:
    return list(range(n))


@task
def many_at_once(n: int) -> list[int]:
    return list(range(n))


@task
def arrow() -> Any:
    return pa.table({"x": [1, 2]})


@task
async def nested(rows: Object) -> dict[str, Any]:
    return {"first": rows, "second": [rows["v"]], "third": 3}


@task
async def unpack(found: dict[str, Any]) -> Any:
    return [await found["first"].count(), await found["second"][0].data(), found["third"]]


@task
def made_in_a_loop_of_its_own() -> Any:
    return asyncio.run(inside_a_context.function())


@task
async def inside_a_context() -> Any:
    async with data_context():
        return await create_object_from_value([7])


@task
async def fails_after_making() -> None:
    made = await create_object_from_value([1, 2, 3])
    assert await made.count() == 3
    raise ValueError("after it made a table")


@task
async def names_one() -> str:
    made = await create_object_from_value([4, 5], name="kept", scope="job")
    return made.table


@task
async def opens_it(after: str) -> Any:
    return await (await open_object("kept", scope="job")).data()


@task
async def unready(rows: Object) -> Any:
    return TaskResult(data=rows["v"] * 2)


@job("objects")
def pipeline(n: int) -> Any:
    made = make(n=n)
    small = narrow(rows=made)
    return [read(rows=total(rows=small)), read(rows=small)]


@job("given rows")
def given_rows(rows: Any) -> Any:
    return read(rows=rows)


@job("annotated")
def annotated() -> Any:
    return wants(rows=plain())


@job("large")
def large(n: int) -> Any:
    return wants(rows=many(n=n))


@job("large at once")
def large_at_once(n: int) -> Any:
    return wants(rows=many_at_once(n=n))


@job("frames")
def frames() -> Any:
    return read(rows=arrow())


@job("nested")
def packed() -> Any:
    return unpack(found=nested(rows=make(n=4)))


@job("context")
def in_context() -> Any:
    return read(rows=inside_a_context())


@job("own loop")
def in_a_loop_of_its_own() -> Any:
    return read(rows=made_in_a_loop_of_its_own())


@job("failing")
def failing() -> Any:
    return fails_after_making()


@job("named")
def named() -> Any:
    return opens_it(after=names_one())


@job("lazy")
def lazy() -> Any:
    return read(rows=unready(rows=make(n=3)))


@job
def given_back(rows: Any) -> Any:
    return rows


@job("given")
def given(rows: Any) -> Any:
    return read(rows=rows)


@task
async def whole_and_part() -> dict[str, Any]:
    whole = await create_object_from_value([1, 2, 3])
    return {"whole": whole, "part": whole.where("value > 2")}


@job
def holding() -> Any:
    return whole_and_part()


@task
async def times_of(at: datetime) -> Object:
    return await create_object_from_value({"t": [at, at + timedelta(hours=1)]})


@task
async def told_of(at: datetime, rows: Object, later: Object, batch: Object) -> list[Any]:
    return [at, await rows["t"].data(), later.schema.types, await later.data(), await batch.data()]


def an_hour_later(row: datetime) -> datetime:
    return row + timedelta(hours=1)


def the_same(table: pa.Table) -> pa.Table:
    return table


@job
def timely(at: datetime) -> Any:
    rows = times_of(at)
    later = map_rows(an_hour_later, rows, partition=1)
    return told_of(at, rows, later, map_rows(the_same, rows, partition=1, batch=True))


@task
async def expecting(on_fail: str) -> Any:
    rows = await create_object_from_value({"id": [1, 2, 2], "price": [-1, 5, 7]})
    await rows.expect(rows=3)
    found = await rows.expect(unique="id", between={"price": (0, None)}, on_fail=on_fail)  # type: ignore[arg-type]
    return await found.bad_rows()
