"""What is checked before anything is submitted."""

import logging

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import EntrypointError, SignatureMismatch
from aaiclick.orchestration.checks import check_defaults, check_entrypoints, find_entrypoint, refuse_during_import
from aaiclick.orchestration.models import Task

HERE = "tests.orchestration.sample_flows"


def test_what_can_be_run_passes() -> None:
    check_entrypoints([Task(f"{HERE}.plain", {"a": 1})])


def test_a_function_is_looked_at_once_for_each_set_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def resolve(entrypoint: str) -> object:
        looked.append(entrypoint)
        return takes_x

    monkeypatch.setattr("aaiclick.orchestration.checks.resolve", resolve)
    check_entrypoints([Task("m.f", {"x": number}) for number in range(1000)])
    assert looked == ["m.f"]


def takes_x(x: int) -> int:
    return x


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SignatureMismatch):
        check_entrypoints([Task(f"{HERE}.plain", {"nonsense": 1})])


def test_a_module_that_is_not_there_is_refused_where_workers_run_here() -> None:
    with pytest.raises(EntrypointError, match="there is no module nowhere"):
        check_entrypoints([Task("nowhere.f")])


def test_a_module_that_is_not_there_is_a_warning_where_workers_run_elsewhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AAICLICK_SQL_URL", "postgresql://someone@somewhere/state")
    reset_settings()
    with caplog.at_level(logging.WARNING, "aaiclick"):
        check_entrypoints([Task("nowhere.f")])
    assert "Workers must be able to import it" in caplog.text


def test_a_workflow_is_no_task() -> None:
    with pytest.raises(EntrypointError, match="it is a workflow"):
        check_entrypoints([Task(f"{HERE}.single")])


def test_what_an_entrypoint_names_is_found_or_may_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_entrypoint(f"{HERE}.plain") is not None
    with pytest.raises(EntrypointError, match="has no nothing_of_that_name"):
        find_entrypoint(f"{HERE}.nothing_of_that_name")
    monkeypatch.setenv("AAICLICK_SQL_URL", "postgresql://someone@somewhere/state")
    reset_settings()
    assert find_entrypoint("nowhere.f") is None


def test_defaults_may_leave_something_to_whoever_calls() -> None:
    check_defaults(takes_x, [], "m.f", complete=False)
    check_defaults(takes_x, ["x"], "m.f", complete=True)
    with pytest.raises(SignatureMismatch, match="missing: 'x'"):
        check_defaults(takes_x, [], "m.f", complete=True)
    with pytest.raises(SignatureMismatch, match="unexpected: 'y'"):
        check_defaults(takes_x, ["y"], "m.f", complete=False)


def test_outside_of_an_import_anything_may_be_submitted() -> None:
    refuse_during_import("pipeline(…)")
