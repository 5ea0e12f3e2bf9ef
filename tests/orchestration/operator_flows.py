"""Callbacks, and workflows that call operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from aaiclick.data import Object, create_object_from_value
from aaiclick.orchestration import Group, RetryPolicy, create_task, get_current_context, job, operators, task

# ---------------------------------------------------------------- callbacks


def double(x: int) -> int:
    return x * 2


def untyped(x):
    return x * 2


async def later(x: int) -> int:
    return x * 2


def even_only(x: int) -> int | None:
    return x if x % 2 == 0 else None


def even_record(x):
    return {"x": x, "half": x // 2} if x % 2 == 0 else None


async def later_even(x):
    return x if x % 2 == 0 else None


def scaled(x: int, by: int, plus: int = 0) -> int:
    return x * by + plus


@task
def marked(x: int) -> int:
    return x * 2


@task(max_retries=3, retry=RetryPolicy(delay_s=0), timeout_s=50)
def fails_once(x: int, marks: str) -> int:
    mark = Path(marks) / "failed"
    if x == 7 and not mark.exists():
        mark.touch()
        raise ValueError("for the first time")
    return x * 2


def twice(table: pa.Table) -> pa.Table:
    return pa.table({"value": pc.multiply(table["value"], 2)})


def is_even(x: int) -> bool:
    return x % 2 == 0


def even_mask(table: pa.Table) -> pa.ChunkedArray:
    return pc.equal(pc.bit_wise_and(table["value"], 1), 0)


def even_rows(table: pa.Table) -> pa.Table:
    return table.filter(even_mask(table))


def full_name(row: dict[str, Any]) -> str:
    return f"{row['first']} {row['last']}"


def widened(x: int) -> dict[str, Any]:
    return {"x": x, "square": x * x}


class Pair(TypedDict):
    x: int
    half: float


def pair(x: int) -> Pair:
    return {"x": x, "half": x / 2}


def mixed(x):
    return x if x < 5 else x + 0.5


def sparse(x):
    return None if x < 5 else x


def never(x):
    return None


def clashing(x):
    return x if x < 5 else str(x)


def nothing(x: int) -> None:
    """Annotated so."""


def leaves_a_mark(x: int, marks: str) -> None:
    (Path(marks) / str(x)).touch()


async def total(partition: Object, output: Object) -> None:
    await output.insert(await partition.sum().data())


async def weighted(partition: Object, output: Object, weight: int, plus: int = 0) -> None:
    rows = await partition.data("records")
    await output.insert({"n": sum(row["n"] for row in rows), "w": weight + plus})


async def silent(partition: Object, output: Object) -> None:
    """Inserts nothing."""


async def talkative(partition: Object, output: Object) -> None:
    await output.insert([1, 2])


async def counting(partition: Object, output: Object) -> None:
    names = partition.columns
    rows = await partition.data("records")
    await output.insert({"n": len(rows) if names == ("value",) else sum(row["n"] for row in rows)})


# ---------------------------------------------------------------- tasks and workflows


@task
async def numbers(n: int) -> Any:
    return await create_object_from_value(list(range(n)), fields={"value": "Int64"})


@task
async def people() -> Any:
    return await create_object_from_value({"first": ["Ada", "Alan"], "last": ["Lovelace", "Turing"]})


@task
async def read(rows: Object) -> Any:
    return {"data": await rows.data(), "types": rows.schema.types}


@task
async def read_as_hex(rows: Object) -> Any:
    return [each.hex() for each in await rows.data()]


@task
async def look_at(rows: Object) -> Any:
    return {"count": await rows.count(), "types": rows.schema.types}


@job("in bytes")
def keeping(verb: str, callback: str, rows: Any, options: dict[str, Any]) -> Any:
    return read_as_hex(getattr(operators, verb)(callback, rows, **options))


@job("types")
def keeping_rows(verb: str, callback: str, rows: Any, options: dict[str, Any]) -> Any:
    return look_at(getattr(operators, verb)(callback, rows, **options))


@task
def seen(result: Any) -> Any:
    return [result]


@job("apply one")
def apply_one(verb: str, callback: str, n: int, options: dict[str, Any] | None = None) -> Any:
    return read(getattr(operators, verb)(callback, numbers(n=n), **(options or {})))


@job("apply to an object")
def apply_to(verb: str, callback: str, rows: Any, options: dict[str, Any] | None = None) -> Any:
    return read(getattr(operators, verb)(callback, rows, **(options or {})))


@job("each of these")
def each_of(rows: Any) -> Any:
    return seen(operators.foreach(double, rows))


@job("functions")
def by_function(n: int) -> Any:
    made = numbers(n=n)
    return [read(operators.map(each, made, partition=4)) for each in (double, later, marked)]


@job("chain")
def chain(n: int) -> Any:
    doubled = operators.map(double, numbers(n=n), partition=3)
    even = operators.filter(is_even, operators.map(scaled, doubled, args=(3,), kwargs={"plus": 1}), partition=4)
    return [read(doubled), read(even), read(operators.reduce(total, doubled, partition=2))]


@job("names")
def names() -> Any:
    return read(operators.map(full_name, people()))


@task
async def maps_inside(n: int) -> Any:
    return operators.map(double, await create_object_from_value(list(range(n))), partition=3)


@job("inside")
def inside(n: int) -> Any:
    return read(maps_inside(n=n))


@job("each")
def each_row(n: int, marks: str) -> Any:
    return seen(operators.foreach(leaves_a_mark, numbers(n=n), partition=3, kwargs={"marks": marks}))


@job("group")
def returned_group(n: int) -> Group:
    return operators.map(double, numbers(n=n), partition=3)


@job("values")
def of_plain_values() -> Any:
    return read(operators.map(double, seen(result=5)))


@job("retried")
def retried(n: int, marks: str) -> Any:
    return read(operators.map(fails_once, numbers(n=n), partition=4, args=(marks,)))


@task
async def collects(n: int) -> Any:
    made = [numbers(n=n), numbers(n=2)]
    return await operators.create_result_collector(None, made)


@task
async def count_of(chunk: Object) -> int:
    return await chunk.count()


@task
async def in_chunks(rows: Object, size: int) -> Any:
    """As the specification has it: views by offset and limit, and a number of them to collect."""
    context = get_current_context()
    total_rows = await rows.count()
    made = [numbers(n=1)]
    for offset in range(0, total_rows, size):
        chunk = {"object_type": "view", "table_id": rows.table_id, "offset": offset, "limit": size}
        made.append(create_task(callback=count_of, kwargs={"chunk": chunk}))
    await context.apply(made)
    return await operators.create_result_collector(context.job_id, (total_rows + size - 1) // size)


@job("chunks")
def chunks(n: int, size: int) -> Any:
    return in_chunks(rows=numbers(n=n), size=size)


@job("collector")
def collector(n: int) -> Any:
    return read(collects(n=n))


def has_x(row: dict[str, Any]) -> bool:
    return bool(row["b"] == "x")


def always(row: dict[str, Any]) -> bool:
    return True


async def of_table(partition: Object, output: Object) -> None:
    rows = await partition.data()
    await output.insert({"a": sum(rows["a"])})


GROWING: list[Object] = []


async def grows(x: int) -> int:
    for rows in GROWING:
        await rows.insert([100 + x])
    return x * 2


@job("growing")
def growing(rows: Object) -> Any:
    GROWING[:] = [rows]
    return read(operators.map(grows, rows, partition=3))
