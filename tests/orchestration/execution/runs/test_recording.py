"""Recording a run: its log says why it failed, is closed, and is named in the report."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs.failures import failure_of
from aaiclick.orchestration.execution.runs.recording import recorded
from aaiclick.orchestration.models import Done
from aaiclick.telemetry import masks
from aaiclick.telemetry.fields import bound_fields
from tests.support.bodies import claim_of
from tests.support.front_door import local

__all__ = ["local"]


def test_a_failure_is_told_in_the_log_which_the_report_names(local: Path) -> None:
    claim = claim_of("a.body")
    log = RunLog(claim.task_id, claim.epoch)
    with recorded(claim, log) as record:
        assert bound_fields()["task"] == str(claim.task_id)
        report = record.told(failure_of(claim, ValueError("oh")))
    assert report.log_path is not None
    assert "ValueError: oh" in Path(report.log_path).read_text()
    assert bound_fields() == {}


def test_a_log_that_was_made_by_the_last_bytes_alone_is_named(local: Path) -> None:
    masks.remember(["a secret value"])
    claim = claim_of("a.body")
    log = RunLog(claim.task_id, claim.epoch)
    try:
        with recorded(claim, log) as record:
            log.write(b"a secret")  # held back: the value may follow
            report = record.told(Done(claim.task_id, claim.epoch))
    finally:
        masks.forget_all()
    assert report.log_path is not None
    assert Path(report.log_path).read_text() == "a secret"


def test_the_log_of_a_run_that_is_stopped_is_closed(local: Path) -> None:
    claim = claim_of("a.body")
    log = RunLog(claim.task_id, claim.epoch)
    with suppress(KeyboardInterrupt), recorded(claim, log):
        log.write(b"before")
        raise KeyboardInterrupt
    log.write(b"after")
    assert log.path is not None
    assert Path(log.path).read_text() == "before"


def test_a_run_without_a_log_has_the_fields_too() -> None:
    claim, done = claim_of("a.body"), Done(1, 2)
    with recorded(claim, None) as record:
        assert bound_fields()["job"] == str(claim.job_id)
        assert record.told(done) is done
