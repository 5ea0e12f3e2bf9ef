"""Jobs: runs of workflows."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic

from aaiclick.orchestration.models.front_door import front_door
from aaiclick.orchestration.rules.cache_policies import CacheMode
from aaiclick.orchestration.rules.states import JobStatus, PreservationMode, RunType
from aaiclick.orchestration.rules.type_variables import Given

if TYPE_CHECKING:
    from aaiclick.orchestration.models.group import Group
    from aaiclick.orchestration.models.task import Task


@dataclass(slots=True, eq=False)
class Job(Generic[Given]):
    """One run of a workflow, as of when it was read."""

    id: int
    name: str
    status: JobStatus = JobStatus.PENDING
    run_type: RunType = RunType.MANUAL
    preservation_mode: PreservationMode = PreservationMode.NONE
    key: str | None = None
    key_digest: str | None = None
    registered_job_id: int | None = None
    priority: int = 0
    reserved_for: int = 0
    timeout_s: float | None = None
    result_json: str | None = None
    error: str | None = None
    total_tasks: int = 0
    open_tasks: int = 0
    completed_tasks: int = 0
    failed_tasks: int = 0
    failed_critical: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    fail_fast: bool = False
    scheduled_at: datetime | None = None
    """The scheduled time that this job runs for; None if no schedule made it."""
    backfill_id: int | None = None
    arguments: dict[str, Any] | None = None
    """The arguments of the workflow for display: shortened, secrets masked."""
    skipped_tasks: int = 0
    lane: int = 0
    """What all of its tasks need of whoever runs them."""
    needs: str = field(default="", repr=False)
    """The same as it was said of a new job; `rules/placement` has the form."""
    cache_mode: CacheMode = CacheMode.USE
    _tasks: list[Task] | None = field(default=None, repr=False)
    _groups: list[Group] | None = field(default=None, repr=False)

    @classmethod
    def from_row(cls, row: Any) -> Job[Given]:
        """Make a job from a row of the `jobs` table."""
        facts = dict(row._mapping)
        facts["result_json"] = facts.pop("result")
        facts["arguments"] = None if facts["arguments"] is None else json.loads(facts["arguments"])
        facts["status"] = JobStatus(facts["status"])
        facts["run_type"] = RunType(facts["run_type"])
        facts["cache_mode"] = CacheMode(facts["cache_mode"])
        facts["preservation_mode"] = PreservationMode(facts["preservation_mode"])
        return cls(**facts)

    @property
    def tasks(self) -> list[Task]:
        """The job's tasks, read when first asked for."""
        if self._tasks is None:
            self._tasks = list(front_door("load_job_tasks")(self.id))
        return self._tasks

    @property
    def groups(self) -> list[Group]:
        """The job's groups, read when first asked for."""
        if self._groups is None:
            self._groups = list(front_door("load_job_groups")(self.id))
        return self._groups

    @property
    def result(self) -> Given:
        """The return value of the workflow, in which tasks are replaced by their results.

        Raises Conflict unless the job completed.
        """
        value: Given = front_door("load_job_result")(self.id)
        return value

    @property
    def description(self) -> str:
        """Older name of `name`."""
        return self.name

    def test(self) -> Job[Given]:
        """Run this job in this process, with the coordinator and runner that workers use, and return it finished."""
        finished: Job[Given] = front_door("job_test")(self)
        return finished

    def wait(self, *, timeout_s: float | None = None) -> AwaitableJob[Given]:
        """Wait until this job has ended, update it and return it; inside a running event loop, await the result.

        Raise WaitTimeout if that takes longer than `timeout_s`; the job goes on.
        """
        reached: AwaitableJob[Given] = front_door("wait_for_this")(self, timeout_s)
        return reached

    def update(self, newer: Job) -> Job[Given]:
        """Copy all fields of a newer reading of this job, and return self. Cached tasks and groups are dropped."""
        for each in fields(self):
            setattr(self, each.name, getattr(newer, each.name))
        return self


if TYPE_CHECKING:

    class AwaitableJob(Job[Given], Awaitable[Job[Given]]):
        """The result of a call that blocks outside a running event loop, and must be awaited inside one."""
