"""What a worker is given, and what it reports."""

from dataclasses import fields

from aaiclick.orchestration.models import Claim, Done, Failure, Receipt, Task
from aaiclick.orchestration.models.claim import Report

# What a claim calls otherwise than the task's row, and what it has beside it.
RENAMED = {"task_id": "id"}
FOUND_WHEN_CLAIMED = {"inputs", "members", "outputs", "registered", "installation", "grants"}


def claim() -> Claim:
    return Claim(
        task_id=1,
        epoch=2,
        worker_id=3,
        job_id=4,
        group_id=None,
        name="f",
        entrypoint="a.f",
        kwargs_json="{}",
        attempt=0,
        timeout_s=None,
    )


def test_a_claim_is_made_of_its_tasks_fields() -> None:
    task = Task("a.f")
    named = {RENAMED.get(field.name, field.name) for field in fields(Claim)} - FOUND_WHEN_CLAIMED
    assert [name for name in named if not hasattr(task, name)] == []


def test_a_claim_without_references_has_no_inputs_and_shares_none() -> None:
    first, second = claim(), claim()
    assert first.inputs == {}
    assert first.members == {}
    assert first.inputs is not second.inputs


def test_a_report_carries_the_fence() -> None:
    """Task and epoch; the worker is who reports."""
    for kind in (Done, Failure):
        assert [field.name for field in fields(kind)][:2] == ["task_id", "epoch"]
    reports: list[Report] = [Done(1, 2), Failure(1, 2, "ValueError: no")]
    assert {(report.task_id, report.epoch) for report in reports} == {(1, 2)}


def test_a_run_that_returned_nothing_has_null_for_its_result() -> None:
    assert Done(1, 2).result_json == "null"


def test_a_failure_may_be_tried_again_unless_it_says_otherwise() -> None:
    failure = Failure(1, 2, "ValueError: no")
    assert not failure.permanent
    assert failure.error_types == ()


def test_a_receipt_begins_empty() -> None:
    assert Receipt().accepted == set()
    assert Receipt().accepted is not Receipt().accepted
    assert not Receipt().rippling
