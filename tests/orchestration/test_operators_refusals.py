"""What the operators refuse at the call, before anything is stored."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from aaiclick import operators as older
from aaiclick.data import create_object_from_value, data_context
from aaiclick.errors import EntrypointError, InputError, SignatureMismatch, ValueNotPortable
from aaiclick.orchestration import Group, filter, foreach, map, operators, reduce
from aaiclick.orchestration.gathering import Staging, staged_in
from tests.orchestration import operator_flows as flows
from tests.support.front_door import local

__all__ = ["local"]

VERBS: list[Any] = [map, filter, foreach, reduce]
ROWS = [1, 2, 3]


def callback_for(verb: Any) -> Any:
    return flows.total if verb is reduce else flows.double


def test_they_are_the_same_under_every_address() -> None:
    for verb in VERBS:
        assert getattr(operators, verb.__name__) is getattr(older, verb.__name__) is verb
    assert {"_map_part", "_reduce_part", "_expand_reduce"} <= set(vars(operators))


@pytest.mark.parametrize("verb", VERBS)
def test_a_call_gives_a_group_at_once(verb: Any) -> None:
    group = verb(callback_for(verb), ROWS)
    assert isinstance(group, Group)
    assert group.name == f"{verb.__name__} {callback_for(verb).__name__}"
    assert [task.name for task in group.tasks] == ["expand"]
    assert group.output is group.tasks[0]
    assert verb(callback_for(verb), ROWS, name="mine").name == "mine"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("partition", [0, -1, True, 2.0, "5", 2**63])
def test_a_bad_partition(verb: Any, partition: Any) -> None:
    with pytest.raises(InputError, match="partition"):
        verb(callback_for(verb), ROWS, partition)


def test_reduce_needs_two_rows_at_least() -> None:
    with pytest.raises(InputError, match="2 or more"):
        reduce(flows.total, ROWS, 1)


@pytest.mark.parametrize("verb", VERBS)
def test_bad_callbacks(verb: Any) -> None:
    def nested(*_: object) -> int:
        return 1

    bad: list[Any] = [lambda *_: 1, nested, len, functools.partial(flows.double), int, "os.system", "nosuch.f", "f", 5]
    for callback in [*bad, f"{flows.__name__}.nosuch", flows.chain, None]:
        with pytest.raises(EntrypointError):
            verb(callback, ROWS)


@pytest.mark.parametrize(
    ("verb", "callback", "args", "kwargs"),
    [
        (map, flows.double, (1,), None),
        (map, flows.scaled, (), None),
        (map, flows.scaled, (), {"by": 1, "nosuch": 2}),
        (filter, flows.is_even, (), {"x": 1}),
        (foreach, flows.leaves_a_mark, (), {}),
        (reduce, flows.double, (), None),
        (reduce, flows.weighted, (), None),
        (map, flows.marked, (1, 2), None),
        (map, f"{flows.__name__}.double", (1,), None),
    ],
)
def test_arguments_that_the_callback_does_not_take(verb: Any, callback: Any, args: Any, kwargs: Any) -> None:
    with pytest.raises(SignatureMismatch, match="Its signature is"):
        verb(callback, ROWS, None, args, kwargs)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"args": 5}, "args"),
        ({"kwargs": [1]}, "kwargs"),
        ({"kwargs": {1: 2}}, "kwargs"),
        ({"batch": 1}, "batch"),
        ({"fields": "Int65"}, "Int65"),
        ({"fields": {"a": "nosuch"}}, "nosuch"),
        ({"fields": {}}, "no column"),
    ],
)
def test_bad_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        map(flows.untyped, ROWS, **options)


def test_a_callback_that_returns_nothing_is_for_foreach() -> None:
    with pytest.raises(EntrypointError, match="Use foreach"):
        map(flows.nothing, ROWS)
    foreach(flows.nothing, ROWS)


def test_no_rows_at_all() -> None:
    with pytest.raises(InputError, match="obj"):
        map(flows.double, None)


def test_arguments_must_travel(local: Path) -> None:
    with pytest.raises(ValueNotPortable, match=r"kwargs\.args"):
        map(flows.scaled, ROWS, args=(object(),))


async def test_a_query_that_has_not_run_is_awaited_first(local: Path) -> None:
    async with data_context():
        rows = await create_object_from_value(ROWS)
        with pytest.raises(InputError, match="Await it first"):
            map(flows.double, rows * 2)


@pytest.mark.parametrize("tasks", [True, 3.0, [1], "tasks"])
async def test_a_collector_gathers_tasks(tasks: Any) -> None:
    with pytest.raises(InputError, match="Tasks and Groups"):
        await operators.create_result_collector(None, tasks)


async def test_a_number_of_tasks_to_collect_counts_those_of_a_running_task() -> None:
    with pytest.raises(InputError, match="that a running task has made"):
        await operators.create_result_collector(None, 3)
    with staged_in(Staging(7, 100)):
        flows.numbers(n=1)
        for wrong in (-1, 2, 2**70):
            with pytest.raises(InputError, match="has made 1"):
                await operators.create_result_collector(None, wrong)
        with pytest.raises(InputError, match="for its own job"):
            await operators.create_result_collector(8, 1)
