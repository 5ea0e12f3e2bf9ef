"""What a child tells of an entrypoint, and what stands for it here."""

from __future__ import annotations

import json

import pytest

from aaiclick.errors import SignatureMismatch
from aaiclick.orchestration.rules.placement import needs_of
from aaiclick.orchestration.submitting.decorated_options import own_options, task_options
from aaiclick.orchestration.submitting.entrypoints import check_call, kind_of, required_names
from aaiclick.orchestration.submitting.inspection import StandIn, look_at
from tests.orchestration import sample_flows, scheduled_flows

FLOWS = "tests.orchestration.sample_flows"


def test_a_task_and_a_job_are_told_with_their_parameters() -> None:
    task, job = look_at(f"{FLOWS}.add"), look_at(f"{FLOWS}.pipeline")
    assert (task["kind"], task["name"], task["options"]["priority"]) == ("task", "add", 0)
    assert [parameter["name"] for parameter in task["parameters"]] == ["a", "b"]
    assert job["kind"] == "job"
    assert job["options"]["priority"] == 0


def test_what_cannot_be_found_is_told_with_the_reason() -> None:
    refused = look_at(f"{FLOWS}.no_such_thing")
    assert "no_such_thing" in refused["refused"]["cause"]
    assert refused["missing"] is False
    assert look_at("no_such_module_anywhere.f")["missing"] is True


def test_a_stand_in_is_checked_like_the_function_itself() -> None:
    stand_in = StandIn(look_at(f"{FLOWS}.add"))
    assert kind_of(stand_in) == "task"
    assert required_names(stand_in) == {"a", "b"}
    check_call(stand_in, ["a", "b"], "x")
    with pytest.raises(SignatureMismatch, match=r"missing: 'b'.*add\(a, b\)"):
        check_call(stand_in, ["a"], "x")


def test_a_stand_in_has_the_options_of_its_decorator() -> None:
    """They travel as JSON."""
    stand_in = StandIn(json.loads(json.dumps(look_at("tests.orchestration.scheduled_flows.told"))))
    here, there = task_options(scheduled_flows.told), task_options(stand_in)
    assert needs_of(there.pop("placement")) == needs_of(here.pop("placement")) != ""
    assert there == here
    assert own_options(stand_in).priority == 4
    assert task_options(StandIn(look_at(f"{FLOWS}.add"))) == task_options(sample_flows.add)
    assert own_options(StandIn(look_at(f"{FLOWS}.pipeline"))) == own_options(sample_flows.pipeline)


def test_a_stand_in_is_never_called() -> None:
    stand_in = StandIn(look_at(f"{FLOWS}.add"))
    with pytest.raises(AssertionError):
        stand_in(a=1)
    with pytest.raises(AssertionError):
        stand_in.function(a=1)
