"""What a child tells of an entrypoint, and what stands for it here."""

from __future__ import annotations

import pytest

from aaiclick.errors import SignatureMismatch
from aaiclick.orchestration.submitting.entrypoints import check_call, kind_of, required_names
from aaiclick.orchestration.submitting.inspection import StandIn, look_at

FLOWS = "tests.orchestration.sample_flows"


def test_a_task_and_a_job_are_told_with_their_parameters() -> None:
    task, job = look_at(f"{FLOWS}.add"), look_at(f"{FLOWS}.pipeline")
    assert (task["kind"], task["name"], task["options"]) == ("task", "add", {})
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


def test_a_stand_in_is_never_called() -> None:
    stand_in = StandIn(look_at(f"{FLOWS}.add"))
    with pytest.raises(AssertionError):
        stand_in(a=1)
    with pytest.raises(AssertionError):
        stand_in.function(a=1)
