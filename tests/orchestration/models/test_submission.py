"""A graph on its way to the database."""

from aaiclick.orchestration.models import Task
from aaiclick.orchestration.models.submission import Submission


def test_a_submission_begins_empty_and_shares_nothing() -> None:
    first, second = Submission(1), Submission(2)
    first.tasks.append(Task("some.module.f"))
    assert [second.tasks, second.groups, second.edges] == [[], [], []]
    assert first.new_job is None
