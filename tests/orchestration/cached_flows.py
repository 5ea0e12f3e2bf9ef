"""Tasks whose results are remembered. Each body leaves a line in the file that AAICLICK_TEST_RAN names."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from aaiclick.data import Object, create_object_from_value
from aaiclick.errors import InputError
from aaiclick.orchestration import Cache, TaskResult, get_current_run, job, task
from aaiclick.orchestration.rules.secrets import Secret

RAN = "AAICLICK_TEST_RAN"


def note(what: object) -> None:
    """Write a line that says what ran, where no process loses it."""
    path = os.environ.get(RAN)
    if path is not None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{what}\n")


@task(cache=True)
def double(x: int) -> int:
    note(f"double {x}")
    return 2 * x


@task(cache=True)
async def rows(count: int) -> Object:
    note(f"rows {count}")
    return await create_object_from_value({"n": list(range(count))})


@task(cache=True)
async def total(of: Object) -> int:
    note("total")
    return int(await of["n"].sum().data())


@task
async def plain_total(of: Object) -> int:
    return int(await of["n"].sum().data())


@task
async def plain_rows(count: int) -> Object:
    return await create_object_from_value({"n": list(range(count))})


@task
async def adds_row(of: Object, copied: bool = False) -> int:
    changed = await of.copy() if copied else of
    await changed.insert({"n": [1000]})
    return int(await changed["n"].sum().data())


@task
async def handed_on(of: Object) -> list[Any]:
    return [of, of.view()]


@task
async def adds_row_to_each(of: list[Any]) -> list[str]:
    refused = []
    for each in of:
        try:
            await each.insert({"n": [1000]})
        except (InputError, AttributeError) as error:
            refused.append(type(error).__name__)
    return refused


@task(cache=timedelta(hours=1))
def fails_first(path: str) -> str:
    note("fails_first")
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8"):
            raise ValueError("the first time")
    return "fine"


@task(cache=Cache(version=1, key="{customer}-{day}"))
def by_key(customer: str, day: str, noise: float = 0.0) -> str:
    note(f"by_key {customer} {day}")
    return f"{customer} {day} {noise}"


@task(cache=Cache(key=lambda x: f"even {x % 2 == 0}"))
def by_function(x: int) -> int:
    note(f"by_function {x}")
    return x


@task(cache=Cache(scope="job"))
def in_job(x: int) -> int:
    note(f"in_job {x}")
    return x


@task
def uncached(x: int) -> int:
    note(f"uncached {x}")
    return x


@task(cache=True)
def with_secret(login: Secret | str) -> int:
    note("with_secret")
    return len(str(login))


@task(cache=True)
def grows(x: int) -> TaskResult[Any]:
    note(f"grows {x}")
    return TaskResult(tasks=[uncached(x)])


@task(idempotency_key="charge-{order}")
def charge(order: int, amount: float) -> str:
    note(f"charge {order}")
    return f"{get_current_run().idempotency_key}: {amount}"


@task(max_retries=1, idempotency_key="charge-{order}")
def charge_with_failures(order: int, path: str) -> str:
    note(get_current_run().idempotency_key)
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8"):
            raise ValueError("the first time")
    return get_current_run().idempotency_key


def parity(x: int) -> str:
    return f"even {x % 2 == 0}"


@job
def doubling(x: int) -> Any:
    return double(x)


@job
def sums(count: int) -> Any:
    return total(rows(count))


@job
def plain_sums(count: int) -> Any:
    return plain_total(rows(count))
