"""Values of all kinds go from task to task and come back as they were: on every database, here and in children."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aaiclick.orchestration import (
    ajob_test,
    get_job_result,
    get_tasks_for_job,
    job,
    register_type,
    task,
    worker_main_loop,
)
from aaiclick.orchestration.rules.values.encoding import decode_kwargs
from tests.orchestration.rules.values.test_plain_kinds import anything
from tests.support.front_door import local, state
from tests.support.travelling import SPECIAL, Config, Money, same

__all__ = ["local", "state"]

register_type(Money, name="money", encode=lambda money: (money.amount, money.currency), decode=lambda it: Money(*it))
ALL = [*SPECIAL, Money(5, "EUR"), np.float32(0.1), {"a": np.arange(4, dtype=">i2")}]


@task
def echo(value: Any) -> Any:
    return value


@task
def wrapped(value: Any) -> Config:
    return Config(parent=value, tags=["x"])


@job
def through_two_tasks(values: list[Any]) -> list[Any]:
    return [echo(echo(value)) for value in values]


@job
def inside_of_a_dataclass() -> Any:
    return wrapped(Config(parent=echo(7)))


def all_same(found: list[Any]) -> bool:
    *rest, array = found
    *expected, given_array = ALL
    assert isinstance(given_array, dict)
    assert (array["a"].dtype, array["a"].tolist()) == (given_array["a"].dtype, [0, 1, 2, 3])
    return len(rest) == len(expected) and all(same(one, other) for one, other in zip(rest, expected, strict=True))


async def test_values_come_back_as_they_were(state: str) -> None:
    ended = await ajob_test(through_two_tasks, ALL)
    assert ended.status == "completed", ended.error
    assert all_same(await get_job_result(ended.id))


async def test_values_go_through_children_as_they_are(local: object) -> None:
    made = await through_two_tasks.submit(ALL)
    async with asyncio.timeout(100):
        await worker_main_loop(executor="process", concurrency=1, max_tasks=2 * len(ALL), control=False)
    assert all_same(await get_job_result(made.id))


async def test_a_task_may_be_among_the_fields_of_an_argument(local: object) -> None:
    ended = await ajob_test(inside_of_a_dataclass)
    result = await get_job_result(ended.id)
    assert result == Config(parent=Config(parent=7), tags=["x"])  # type: ignore[arg-type]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(anything, min_size=1, max_size=8))
def test_every_database_gives_back_what_it_was_given(state: str, values: list[object]) -> None:
    async def stored() -> list[object]:
        made = await through_two_tasks.submit(values)
        texts = [task.kwargs_json for task in await get_tasks_for_job(made.id) if not task.needs_inputs]
        return [decode_kwargs(text)["value"] for text in texts]

    assert same(asyncio.run(stored()), values)
