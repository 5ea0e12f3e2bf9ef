"""What a decorator says of a function holds for jobs that run it by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aaiclick.orchestration import job, task
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.submitting.decorated_options import OwnOptions, own_options, task_options
from aaiclick.orchestration.submitting.inspection import StandIn, look_at


def plain() -> None: ...


@task(retry=RetryPolicy(2, retry_on=("ValueError",)), timeout_s=5, priority=3, critical=False)
def careful() -> None: ...


@task
def simple() -> None: ...


def test_of_a_task() -> None:
    retry = RetryPolicy(2, delay_s=1)
    made = task(
        name="shown", retry=retry, timeout_s=5, priority=3, critical=False, stop_when_cut_off=False, placement="a == 1",
        resources={"gpu": 1},
    )(plain)  # fmt: skip
    assert own_options(made) == OwnOptions(priority=3, placement="a == 1", resources={"gpu": 1})
    assert task_options(made) == {
        "name": "shown",
        "max_retries": None,
        "retry": retry,
        "timeout_s": 5,
        "critical": False,
        "stop_when_cut_off": False,
        "placement": "a == 1",
        "resources": {"gpu": 1},
    }


def test_of_a_workflow() -> None:
    made = job(priority=3, timeout_s=5, fail_fast=True, preservation_mode="FULL", placement="a == 1")(plain)
    assert own_options(made) == OwnOptions(3, 5, True, "FULL", "a == 1")
    assert task_options(made) == {}


def test_of_a_plain_function_and_of_one_that_is_not_here() -> None:
    for found in (plain, None):
        assert own_options(found) == OwnOptions()
        assert task_options(found) == {}


@pytest.mark.parametrize("made", [careful, simple], ids=["careful", "simple"])
def test_of_a_task_that_a_child_has_inspected(made: Any) -> None:
    facts = json.loads(json.dumps(look_at(f"{__name__}.{made.function.__name__}")))
    assert own_options(StandIn(facts)) == own_options(made)
    assert task_options(StandIn(facts)) == task_options(made)
