"""Options are told to type checkers in one place: what code takes is what that says."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

from aaiclick.orchestration import JobFactory, Task, TaskFactory, create_job, create_task
from aaiclick.orchestration.rules.options import EntryOptions, JobOptions, TaskOptions
from aaiclick.orchestration.rules.schedules.fires import MissedRuns, Overlap
from aaiclick.orchestration.rules.triggers import Trigger, When


def fields(factory: type) -> set[str]:
    return {field.name for field in dataclasses.fields(factory)} - {"function"}


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def test_a_decorator_takes_what_one_call_takes() -> None:
    assert fields(TaskFactory) == set(TaskOptions.__annotations__)
    assert fields(JobFactory) == set(JobOptions.__annotations__)


def test_the_plain_functions_take_the_same() -> None:
    assert parameters(create_task) == {*TaskOptions.__annotations__, "callback", "kwargs", "group_id"}
    assert parameters(create_task) - {"callback", "executor"} <= parameters(Task)
    assert parameters(create_job) == {*JobOptions.__annotations__, "entry", "tasks", "kwargs"}


def test_words_are_those_of_the_rules() -> None:
    (names,) = (each for each in get_args(Trigger) if each is not When)
    assert get_args(names) == tuple(When)
    hints = get_type_hints(EntryOptions)
    for field, words in (("missed_runs", MissedRuns), ("overlap", Overlap)):
        told = [word for each in get_args(hints[field]) for word in get_args(each)]
        assert told == list(words)
