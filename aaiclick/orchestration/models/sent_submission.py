"""A submission as plain data, sent between processes; msgspec encodes it without conversion."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from aaiclick.orchestration.models.children import (
    NewEdge,
    NewGroup,
    NewTask,
    new_edges,
    new_group,
    new_task,
    revived,
)
from aaiclick.orchestration.models.job import Job
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.cache_policies import CacheMode
from aaiclick.orchestration.rules.states import PreservationMode, RunType


class NewJob(NamedTuple):
    """A new job as plain data, sent to the process that stores it."""

    id: int
    name: str
    run_type: RunType
    preservation_mode: PreservationMode
    key: str | None
    key_digest: str | None
    registered_job_id: int | None
    priority: int
    reserved_for: int
    timeout_s: float | None
    result_json: str | None
    fail_fast: bool
    scheduled_at: datetime | None
    backfill_id: int | None
    arguments_json: str | None
    needs: str = ""
    cache_mode: CacheMode = CacheMode.USE

    @classmethod
    def of(cls, job: Job) -> NewJob:
        """Convert a new job; fields that the database fills in are left out."""
        said = {field: getattr(job, field) for field in cls._fields if field != "arguments_json"}
        shown = None if job.arguments is None else json.dumps(job.arguments, ensure_ascii=False)
        return cls(**said, arguments_json=shown)

    def job(self) -> Job:
        """Return the job, to be stored."""
        said = self._asdict()
        shown = said.pop("arguments_json")
        return Job(**said, arguments=None if shown is None else json.loads(shown))


@dataclass(slots=True, frozen=True)
class SentSubmission:
    """A Submission as plain data."""

    job_id: int
    tasks: list[NewTask]
    groups: list[NewGroup]
    edges: list[NewEdge]
    stored: dict[int, str]
    """The names of stored nodes at the ends of new edges, by id, so that errors can name them."""
    new_job: NewJob | None = None
    whole: bool = False

    @classmethod
    def of(cls, submission: Submission) -> SentSubmission:
        """Convert a submission; the nodes in memory do not change."""
        new = {node.id for node in (*submission.tasks, *submission.groups)}
        ends = (end for edge in submission.edges for end in (edge.previous, edge.next))
        return cls(
            submission.job_id,
            tasks=[new_task(task, None) for task in submission.tasks],
            groups=[new_group(group, None) for group in submission.groups],
            edges=new_edges(submission),
            stored={end.id: end.name for end in ends if end.id not in new},
            new_job=None if submission.new_job is None else NewJob.of(submission.new_job),
            whole=submission.whole,
        )

    def submission(self) -> Submission:
        """Return the submission, to be stored."""
        found = revived(self, self.job_id, self.stored, None, None)
        found.new_job, found.whole = None if self.new_job is None else self.new_job.job(), self.whole
        return found
