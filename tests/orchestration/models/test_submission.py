"""A graph on its way to the database."""

import pytest

from aaiclick.errors import ValueExposed
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.telemetry.masks import remember


def test_a_submission_begins_empty_and_shares_nothing() -> None:
    first, second = Submission(1), Submission(2)
    first.tasks.append(Task("some.module.f"))
    assert [second.tasks, second.groups, second.edges] == [[], [], []]
    assert first.new_job is None


def test_what_was_handed_over_is_the_jobs() -> None:
    first, second = Task("some.module.f"), Task("some.module.f")
    first >> second
    submission = Submission(7, tasks=[first, second], edges=list(first.outgoing))
    submission.hand_over()
    assert [(node.applied, node.job_id) for node in (first, second)] == [(True, 7)] * 2
    assert [edge.applied for edge in first.outgoing] == [True]


def test_what_a_secret_was_resolved_to_is_refused_as_a_result_too() -> None:
    remember(["the-value-of-a-secret"])
    job = new_job("telling")
    job.result_json = '{"object_type":"pyobj","value":"the-value-of-a-secret"}'
    with pytest.raises(ValueExposed, match=rf"The result of job {job.id}"):
        Submission(job.id, new_job=job).refuse_exposed()
