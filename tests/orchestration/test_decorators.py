"""`@task`: what a call makes of its arguments, and what is refused when."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import pytest

from aaiclick.errors import (
    CircularDependencyError,
    EntrypointError,
    InputError,
    SignatureMismatch,
    ValueNotPortable,
    ValueTooLarge,
)
from aaiclick.orchestration import (
    Group,
    RetryPolicy,
    Task,
    TaskFactory,
    as_task,
    count_jobs,
    job,
    task,
)
from aaiclick.orchestration.rules.values.encoding import decode_kwargs
from tests.orchestration import sample_flows as flows
from tests.support.front_door import local, state

__all__ = ["local", "state"]

HERE = "tests.orchestration.sample_flows"


def given(made: Any) -> dict[str, object]:
    """The arguments as the body will get them, references apart."""
    return decode_kwargs(made.kwargs_json)


def upstream(made: Any) -> list[int]:
    return [edge.previous.id for edge in made.incoming]


# ---------------------------------------------------------------- @task


def test_a_task_is_marked_in_several_spellings() -> None:
    def work(a: int) -> int:
        return a

    bare, called, named, positional = task(work), task()(work), task(name="other")(work), task("other")(work)
    assert [made.name for made in (bare, called, named, positional)] == ["work", "work", "other", "other"]
    assert {type(made) for made in (bare, called, named, positional)} == {TaskFactory}
    assert {made.function for made in (bare, called, named, positional)} == {work}


def test_a_marked_function_looks_like_itself() -> None:
    assert flows.add.__name__ == "add"  # type: ignore[attr-defined]
    assert flows.add.__module__ == HERE
    assert str(flows.plain.__doc__) == task(flows.plain).__doc__
    assert flows.add.__wrapped__ is flows.add.function  # type: ignore[attr-defined]


async def test_the_plain_function_stays_at_hand() -> None:
    assert await flows.add.function(1, 2) == 3


def test_calling_a_task_makes_a_task_with_an_id() -> None:
    made, other = flows.add(1, 2), flows.add(1, 2)
    assert isinstance(made, Task)
    assert made.id != other.id
    assert made.entrypoint == f"{HERE}.add"
    assert made.name == "add"
    assert made.status == "pending"


def test_options_of_a_task_reach_the_task() -> None:
    @task("slow", max_retries=4, timeout_s=2.5, priority=7, critical=False)
    def work() -> None: ...

    factory = TaskFactory(flows.plain, "slow", max_retries=4, timeout_s=2.5, priority=7, critical=False)
    made = factory()
    assert work.max_retries == 4
    assert (made.max_retries, made.timeout_s, made.priority, made.critical) == (4, 2.5, 7, False)


def test_a_retry_policy_is_kept_and_max_retries_wins_over_it() -> None:
    policy = RetryPolicy(max_retries=2, delay_s=0)
    assert as_task(flows.add.options(retry=policy)(1, 2)).retry == policy
    made = as_task(flows.add.options(retry=policy, max_retries=9)(1, 2))
    assert made.retry == RetryPolicy(max_retries=9, delay_s=0)


def test_options_give_another_factory_and_leave_the_first_alone() -> None:
    urgent = flows.add.options(priority=5, name="urgent")
    made = as_task(urgent(1, 2))
    assert made.priority == 5
    assert made.entrypoint == f"{HERE}.add"
    assert (as_task(flows.add(1, 2)).priority, flows.add.name) == (0, "add")


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="retries"):
        task(retries=3)(flows.plain)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="speed"):
        flows.add.options(speed=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), "5", True, 1e308, 10**12, 10**400])
def test_a_timeout_must_be_a_number_of_seconds(timeout_s: Any) -> None:
    with pytest.raises(InputError, match="timeout_s"):
        flows.add.options(timeout_s=timeout_s)(1, 2)


@pytest.mark.parametrize("max_retries", [-1, 1.5, "3", True, 10**9])
def test_max_retries_must_be_a_count(max_retries: Any) -> None:
    with pytest.raises(InputError, match="max_retries"):
        flows.add.options(max_retries=max_retries)(1, 2)


@pytest.mark.parametrize("priority", [1.5, "3", True, 2**31])
def test_a_priority_must_be_a_whole_number(priority: Any) -> None:
    with pytest.raises(InputError, match="priority"):
        flows.add.options(priority=priority)(1, 2)


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "\x1b[31m", "a\u202eb", "x" * 201, "\ud800", " a", 5])
def test_a_name_that_cannot_be_shown_is_refused_where_it_is_given(name: object) -> None:
    for mark in (task, job):
        with pytest.raises(InputError, match="name"):
            mark(name=name)(flows.plain)  # type: ignore[call-overload]


def test_names_may_be_in_any_script() -> None:
    assert as_task(flows.größe(1)).name == "größe"
    assert as_task(task("Обработка 数据 😀")(flows.plain)()).name == "Обработка 数据 😀"


def test_decorating_twice_is_refused_at_once() -> None:
    for first in (task, job):
        for second in (task, job):
            with pytest.raises(EntrypointError, match="Mark it once"):
                second(first(flows.plain))


# ---------------------------------------------------------------- what can be a task


def wrapped(function: Callable[..., object]) -> Callable[..., object]:
    return lambda *args, **kwargs: function(*args, **kwargs)


def nested() -> Callable[..., object]:
    def inside() -> None: ...

    return inside


class Callable_:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda: None, "lambda"),
        (nested(), "defined inside a function"),
        (wrapped(flows.plain), "defined inside a function|lambda"),
        (functools.partial(flows.plain, 1), "partial"),
        (Callable_().__call__, "bound to an object"),
        (Callable_(), "not a function"),
        (os.getcwd, "built into Python"),
        (len, "built into Python"),
        (dict, "class"),
        (staticmethod(flows.plain), "staticmethod"),
    ],
)
def test_what_no_worker_could_find_is_refused_when_called(function: Callable[..., object], cause: str) -> None:
    with pytest.raises(EntrypointError, match=cause):
        TaskFactory(function, "work")()


def test_functions_of_a_class_work_if_they_are_static() -> None:
    assert as_task(flows.Shop.price(2)).entrypoint == f"{HERE}.Shop.price"
    with pytest.raises(SignatureMismatch, match="missing: 'self'"):
        flows.Shop().bound(amount=3)  # type: ignore[call-arg]


def test_a_decorator_below_that_uses_wraps_is_fine() -> None:
    made = flows.decorated_inside(5)
    assert made.entrypoint == f"{HERE}.decorated_inside"
    assert given(made) == {"a": 5}


# ---------------------------------------------------------------- arguments


def test_arguments_are_bound_by_name() -> None:
    assert given(flows.add(1, b=2)) == {"a": 1, "b": 2}
    assert given(flows.add(1, 2)) == {"a": 1, "b": 2}


def test_defaults_are_left_to_the_function() -> None:
    assert given(flows.with_defaults(1)) == {"a": 1}
    assert given(flows.with_defaults(1, c=5)) == {"a": 1, "c": 5}


def test_names_beyond_the_parameters_need_double_stars() -> None:
    assert given(flows.with_the_rest(1, other=2, self=3)) == {"a": 1, "other": 2, "self": 3}


def test_parameters_may_be_called_self_and_function() -> None:
    assert given(flows.takes_self(self=1, function=2)) == {"self": 1, "function": 2}
    assert given(flows.takes_self(1, 2)) == {"self": 1, "function": 2}


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda: flows.add(1), "missing: 'b'"),  # type: ignore[call-arg]
        (lambda: flows.add(1, 2, 3), "2 positional arguments, 3 were given"),  # type: ignore[call-arg]
        (lambda: flows.add(1, 2, c=3), "unexpected: 'c'"),  # type: ignore[call-arg]
        (lambda: flows.add(1, a=2), "given twice: 'a'"),  # type: ignore[misc, call-arg]
        (lambda: flows.add(), "missing: 'a', 'b'"),  # type: ignore[call-arg]
        (lambda: flows.with_defaults(1, 2, 3), "2 positional arguments"),  # type: ignore[call-arg]
        (lambda: flows.only_by_position(1, 2), "positional-only"),
        (lambda: flows.with_stars(1, 2), r"\*args"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_with_the_signature(call: Callable[[], object], cause: str) -> None:
    with pytest.raises(SignatureMismatch, match=cause) as refused:
        call()
    assert "Its signature is" in str(refused.value)


def test_what_happens_to_an_argument_after_the_call_does_not_matter() -> None:
    values = [1, 2]
    made = flows.total(values)
    values.append(3)
    assert given(made) == {"values": [1, 2]}


def test_a_users_dict_that_looks_like_a_reference_stays_a_dict() -> None:
    value = {"object_type": "object", "table": "t1"}
    assert given(flows.echo(value)) == {"value": value}


@pytest.mark.parametrize("value", [object(), memoryview(b""), {"x": {1: [open]}}, iter([])])
def test_an_argument_that_cannot_travel_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(ValueNotPortable, match=r"kwargs\.value"):
        flows.echo(value)


def test_an_argument_that_is_too_large_is_refused_with_advice() -> None:
    with pytest.raises(ValueTooLarge, match="Pass an Object"):
        flows.echo("x" * 100_000_001)


# ---------------------------------------------------------------- tasks as arguments


def test_a_task_as_an_argument_is_waited_for_wherever_it_is() -> None:
    tasks = [flows.add(1, 2) for _ in range(4)]
    a, b, c, d = tasks
    made: Any = flows.with_the_rest(a, deep={"x": [b, {"y": (c,)}]}, group=[d])
    assert upstream(made) == [as_task(each).id for each in tasks]
    assert made.needs_inputs


def test_the_same_task_twice_is_one_dependency_in_the_end() -> None:
    a = flows.add(1, 2)
    made = flows.add(a, a)
    assert set(upstream(made)) == {as_task(a).id}


def test_a_task_in_a_set_or_as_a_key_is_refused() -> None:
    for value in ({flows.add(1, 2)}, {flows.add(1, 2): 1}, frozenset([flows.add(1, 2)])):
        with pytest.raises(ValueNotPortable, match="cannot be in a set or be a key"):
            flows.echo(value)


def test_a_group_as_an_argument_is_waited_for() -> None:
    with Group("parts") as parts:
        flows.add(1, 2)
    made = flows.total(parts)
    assert upstream(made) == [parts.id]


async def test_a_group_as_an_argument_of_its_own_member_is_a_cycle(local: object) -> None:
    @job
    def loops() -> object:
        with Group("parts") as parts:
            return flows.total(parts)

    with pytest.raises(CircularDependencyError, match="parts"):
        await loops.submit()
    assert await count_jobs() == 0


def test_two_thousand_tasks_in_one_list() -> None:
    parts = [flows.add(number, 1) for number in range(2000)]
    made = flows.total(parts)
    assert upstream(made) == [as_task(part).id for part in parts]


# ---------------------------------------------------------------- to type checkers


def test_as_task_gives_the_same_object() -> None:
    made: Any = flows.add(1, 2)
    assert as_task(made) is made
    assert isinstance(made, Task)


@pytest.mark.parametrize("wrong", [3, None, Group("g"), flows.add, [flows.add(1, 2)]], ids=repr)
def test_as_task_refuses_what_is_none(wrong: Any) -> None:
    with pytest.raises(InputError, match="as_task"):
        as_task(wrong)
