"""The front door as people use it, right and wrong: each wrong line says so, and both checkers must report just these.

Read by checkers alone, never run; see `tests/stories/test_typed_door.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, assert_type

import aaiclick
from aaiclick import (
    Group,
    Object,
    RetryPolicy,
    Secret,
    Task,
    View,
    ajob_test,
    as_task,
    col,
    concat,
    create_job,
    create_object_from_value,
    create_task,
    data_context,
    get_job,
    job,
    job_test,
    lit,
    map,
    open_object,
)
from aaiclick.data import Frame, Query, Term
from aaiclick.errors import NotFound
from aaiclick.orchestration import (
    Failed,
    Job,
    JobStatus,
    TaskResult,
    filter,
    foreach,
    reduce,
    register_job,
    task,
    wait_for_job,
)

aaiclick.create_jub  # wrong: misspelled
aaiclick.orchestration.create_jub  # wrong: misspelled
aaiclick.data.create_objekt  # wrong: misspelled

# ---------------------------------------------------------------- tasks


@task
def square(x: int) -> int:
    return x * x


@task("fetch it", max_retries=3, timeout_s=60, when="all_done")
async def fetch(url: str, *, tries: int = 1, token: str | None = None) -> list[str]:
    return [url] * tries


@task(name="save", retry=RetryPolicy(max_retries=2), priority=5, critical=False)
def save(lines: list[str], to: str = "here") -> None: ...


@task
def total(values: list[int]) -> float:
    return float(sum(values))


@task
def tell(found: int | Failed) -> str:
    return found.message if isinstance(found, Failed) else str(found)


@task
async def count(rows: Object) -> int:
    assert_type(await (rows + 1).sum().data(), Any)
    return await rows.count()


@task
async def load() -> Object:
    return await create_object_from_value([1, 2, 3])


@task
def grow(n: int) -> Task[int]:
    return as_task(square(n))


@task
async def hand_on(n: int) -> TaskResult[dict[str, int]]:
    return TaskResult(data={"n": n}, tasks=[square(n)])


@task(speed=3)  # wrong: no such option
def hasty() -> None: ...


@task(max_retries="3")  # wrong: a number
def stubborn() -> None: ...


@task(when="sometimes")  # wrong: no such rule
def fickle() -> None: ...


assert_type(square(2), int)
assert_type(square(x=square(2)), int)
assert_type(fetch("a", tries=2), list[str])
assert_type(save(fetch("a")), None)
assert_type(total([square(1), square(2)]), float)
assert_type(tell(square(2)), str)
assert_type(grow(3), int)
assert_type(hand_on(3), dict[str, int])
assert_type(as_task(square(2)), Task[int])
assert_type(as_task(save(["a"])), Task[None])
assert_type(as_task(square(2)).id, int)
assert_type(square.options(priority=5, timeout_s=None, when="always")(3), int)
assert_type(square.function(3), Any)
assert_type(square.name, str)
as_task(square(2)) >> as_task(save(["a"])) >> [as_task(square(3)), Group("g")]
as_task(square(2)).depends_on(as_task(square(3))).depends_on(Group("g"))
fetch("a", token=Secret("env:TOKEN"))

square("2")  # wrong: text for a number
square()  # wrong: nothing is given
square(1, 2)  # wrong: too many
square(y=1)  # wrong: no such argument
square(fetch("a"))  # wrong: a list of texts for a number
total([square(1), tell(2)])  # wrong: a text among numbers
fetch("a", 2)  # wrong: by its name alone
count([1, 2])  # wrong: a list for an Object
square.options(speed=3)  # wrong: no such option
square.options(priority="high")  # wrong: a number
square.options(when="never")(3)  # wrong: no such rule
square.optoins(priority=3)  # wrong: misspelled
square(2).id  # wrong: as_task is missing
as_task(square(2)).idd  # wrong: misspelled
as_task(square(2)) >> save(["a"])  # wrong: as_task is missing
text: str = square(2)  # wrong: a number

# ---------------------------------------------------------------- groups and operators

with Group("parts", when="none_failed") as parts:
    for number in range(3):
        square(number)
assert_type(total(parts), float)
assert_type(parts.id, int)
assert_type(parts.tasks, list[Task])
parts >> as_task(save(fetch("a")))


def halve(row: int) -> float:
    return row / 2


def is_large(row: int) -> bool:
    return row > 1


def merge(partition: Object, output: Object) -> None: ...


assert_type(count(map(halve, load(), partition=10)), int)
assert_type(count(filter(is_large, load())), int)
assert_type(count(reduce(merge, map(halve, load()))), int)
foreach(halve, load()) >> as_task(square(2))
map(halve, load(), partition="10")  # wrong: a number
Group(3)  # wrong: a name
Group("g", when="rarely")  # wrong: no such rule

# ---------------------------------------------------------------- jobs


@job
def pipeline(x: int, *, label: str = "a") -> float:
    return total([square(x), square(x + 1)])


@job("async", priority=3, fail_fast=True)
async def later(x: int) -> dict[str, int]:
    return {"x": square(x)}


@job
def handing(x: int) -> TaskResult[list[int]]:
    return TaskResult(data=[square(x)], tasks=[save(["a"])])


@job
def plain(x: int) -> TaskResult:
    return TaskResult(tasks=[square(x), as_task(square(x)), parts])


@job
def mapped() -> Object:
    return map(halve, load())


@job(retries=3)  # wrong: no such option
def hopeful() -> None: ...


assert_type(pipeline(3).result, float)
assert_type(pipeline(x=3, label="b").id, int)
assert_type(pipeline(3).status, JobStatus)
assert_type(pipeline.options(key="2026-11-15", priority=5)(x=3).result, float)
assert_type(later(3).result, dict[str, int])
assert_type(handing(3).result, list[int])
assert_type(plain(3).result, Any)
assert_type(mapped().result, Object)
assert_type(pipeline(3).test(), Job[float])
assert_type(pipeline(3).wait(timeout_s=3).result, float)
assert_type(job_test(pipeline(3)), Job[float])
assert_type(job_test(pipeline, 3, label="c").result, float)
assert_type(job_test(pipeline, x=3, debugger=True).result, float)

pipeline("3")  # wrong: text for a number
pipeline()  # wrong: nothing is given
pipeline(3, labl="b")  # wrong: misspelled
pipeline(3).resutl  # wrong: misspelled
pipeline.options(fail_fast="yes")  # wrong: true or false
pipeline.options(speed=3)  # wrong: no such option
job_test(pipeline, "3")  # wrong: text for a number
job_test(pipeline)  # wrong: nothing is given
job_test(pipeline(3), 4)  # wrong: the job has its own
job_test(square, 3)  # wrong: a task is no job
pipeline(3).result.upper()  # wrong: a number
pipeline(3).wait(timeout="3")  # wrong: misspelled


async def submits() -> None:
    assert_type(await pipeline(3), Job[float])
    assert_type(await pipeline.submit(3, label="d"), Job[float])
    assert_type((await ajob_test(pipeline, 3)).result, float)
    assert_type((await ajob_test(await later.submit(3))).result, dict[str, int])
    assert_type(await pipeline(3).wait(), Job[float])
    assert_type(await get_job(5), Job | None)
    assert_type(await wait_for_job(5, timeout_s=3), Job)
    made = await create_job("made", square(3), priority=3)
    assert_type(made.result, Any)
    await create_job("more", tasks=[square(3), parts, create_task("a.b", {"x": 1}, max_retries=2)])
    async with aaiclick.Context(job_id=made.id) as context:
        await context.apply([square(3), as_task(square(4)), parts])
    await register_job("daily", pipeline, "0 3 * * *", every=datetime.now(UTC))  # wrong: no such option
    await pipeline.submit("3")  # wrong: text for a number
    await ajob_test(pipeline, "3")  # wrong: text for a number
    await create_job(3, square(3))  # wrong: a name
    await get_job("5")  # wrong: a number
    (await get_job(5)).status  # wrong: there may be none
    create_task("a.b", max_retries="3")  # wrong: a number
    try:
        await pipeline.submit(3)
    except NotFound as refused:
        assert_type(refused.what, Any)
        assert_type(refused.exit_code, int)


# ---------------------------------------------------------------- data


async def computes() -> None:
    async with data_context() as context:
        sales = await create_object_from_value({"city": ["a", "b"], "price": [1.0, 2.0]})
        assert_type(sales, Object)
        assert_type(sales["price"], View)
        assert_type(sales.limit(3), View)
        assert_type(sales.where(col("price") > 1), Frame)
        assert_type(sales["price"] * 2, Query)
        assert_type(1 - sales["price"], Query)
        assert_type(sales["price"].sqrt().round(2), Query)
        assert_type(sales["price"].sum(), Query)
        assert_type(await sales["price"].sum(), Object)
        assert_type(await sales.count(), int)
        assert_type(sales.columns, tuple[str, ...])
        assert_type(await sales.group_by("city").sum("price").having("price > 1"), Object)
        assert_type(col("price").sum().over("city"), Term)
        assert_type(col("price").lag(1).cast(float) > lit(3), Term)
        assert_type(await concat(sales, sales).materialize("all", scope="global"), Object)
        assert_type(await sales.insert({"city": ["c"], "price": [3.0]}, token="t"), int)
        assert_type(await open_object("all"), Object)
        assert_type(await context.list_objects(), list[str])
        sales.sqroot()  # wrong: misspelled
        sales["price"].contains()  # wrong: nothing is given
        sales["price"].contains(needle="a")  # wrong: it has no name
        (sales["price"] + 1).insert([1])  # wrong: a query is no table
        sales.limit("3")  # wrong: a number
        sales[3]  # wrong: a name
        sales.group_by("city").sums()  # wrong: misspelled
        col("price").lagg()  # wrong: misspelled
        col(3)  # wrong: a name
        await sales.materialize("all", scope="world")  # wrong: no such scope
        await open_object(3)  # wrong: a name
        sales.join(sales, on="city", how="outward")  # wrong: no such join
        await sales.data(orient="sideways")  # wrong: no such form
