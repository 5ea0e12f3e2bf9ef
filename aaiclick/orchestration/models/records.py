"""Rows that users read beside jobs, tasks and groups: runs, events, dependencies, workers, schedules, backfills."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from aaiclick.orchestration.rules.schedules.fires import BackfillStatus, FireOutcome, MissedRuns, Overlap, count_times
from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.rules.values.encoding import decode_kwargs


class _Row:
    @classmethod
    def from_row(cls, row: Any) -> Self:
        """Make an instance from a row of its table."""
        return cls(**row._mapping)


@dataclass(slots=True, frozen=True)
class Run(_Row):
    """One attempt at a task that ended, identified by (task id, epoch)."""

    task_id: int
    epoch: int
    attempt: int
    worker_id: int | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    error: str | None
    traceback: str | None
    log_path: str | None
    generation: int


@dataclass(slots=True, frozen=True)
class Event(_Row):
    """A row of the `events` table: one move of a job or task."""

    id: int
    job_id: int
    task_id: int | None
    epoch: int | None
    move: str
    status: str
    worker_id: int | None
    at: datetime
    detail: str | None


@dataclass(slots=True, frozen=True)
class Dependency(_Row):
    """`next` waits for `previous`; each is a task or a group."""

    previous_id: int
    previous_type: str
    next_id: int
    next_type: str
    job_id: int
    met: bool = False


@dataclass(slots=True)
class Worker:
    """A process that runs tasks, with a session that ends at `expires_at` unless renewed."""

    id: int
    hostname: str
    pid: int
    status: WorkerStatus
    last_heartbeat: datetime
    expires_at: datetime
    started_at: datetime
    name: str | None = None
    tasks_completed: int = 0
    tasks_failed: int = 0
    concurrency: int = 0
    unreported_s: int = 0
    """The age of its oldest unreported result at its last heartbeat, in seconds."""
    node_id: int | None = None
    """The machine that it runs on, if it told."""
    cordoned: bool = False
    """Whether it is given no tasks, as its node is cordoned."""

    @classmethod
    def from_row(cls, row: Any) -> Worker:
        """Make a worker from a row of the `workers` table."""
        facts = dict(row._mapping)
        facts["status"] = WorkerStatus(facts["status"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class RegisteredJob(_Row):
    """A registered job: an entry of the catalogue with an entrypoint, default arguments and perhaps a schedule."""

    id: int
    name: str
    entrypoint: str
    enabled: bool
    schedule: str | None
    default_kwargs: dict[str, Any]
    preservation_mode: str | None
    next_run_at: datetime | None
    created_at: datetime
    updated_at: datetime
    timezone: str
    missed_runs: MissedRuns
    missed_max: int
    overlap: Overlap
    time_kwarg: str | None
    """The parameter that receives a run's scheduled time; two names, such as `start,end`, receive its interval."""
    priority: int
    timeout_s: float | None
    fail_fast: bool
    keep_last: int | None
    """How many of its ended runs are kept, whatever their age; all others are removed. None: they are kept by age."""
    placement: dict[str, Any] | None
    """Where the tasks of its runs may run, unless they say otherwise."""

    @property
    def time_names(self) -> list[str]:
        """The names in `time_kwarg`: none, one for the time, or two for the interval."""
        return self.time_kwarg.split(",") if self.time_kwarg else []

    @classmethod
    def from_row(cls, row: Any) -> RegisteredJob:
        """Make an entry from a row of the `registered_jobs` table."""
        facts = dict(row._mapping)
        facts["default_kwargs"] = decode_kwargs(facts["default_kwargs"], importing=False)
        facts["missed_runs"] = MissedRuns(facts["missed_runs"])
        facts["overlap"] = Overlap(facts["overlap"])
        facts["placement"] = None if facts["placement"] is None else json.loads(facts["placement"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class Fire(_Row):
    """The outcome of one time of a schedule."""

    registered_job_id: int
    fire_at: datetime
    outcome: FireOutcome
    job_id: int | None
    backfill_id: int | None
    created_at: datetime

    @classmethod
    def from_row(cls, row: Any) -> Fire:
        """Make a record from a row of the `fires` table."""
        facts = dict(row._mapping)
        facts["outcome"] = FireOutcome(facts["outcome"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class Backfill(_Row):
    """A range of past times of a schedule for which jobs are run, at most `parallel_max` at a time."""

    id: int
    registered_job_id: int
    schedule: str
    timezone: str
    kwargs: dict[str, Any]
    start_at: datetime
    end_at: datetime
    next_at: datetime
    """All times before this one have been handled."""
    parallel_max: int
    status: BackfillStatus
    created_at: datetime
    completed_at: datetime | None
    force: bool = False
    """Whether times that have run are run again."""
    failed_only: bool = False
    """Whether only times are run whose last run failed."""
    from_outside: bool = False
    """Whether its arguments came from outside: functions that they name are then checked where the jobs run."""
    total: int = 0
    left_alone: int = 0
    runs: Mapping[str, int] = field(default_factory=dict)
    """The number of its jobs by status, as of when it was read."""

    @property
    def counts(self) -> dict[str, int]:
        """The number of its times by outcome, as of when it was read."""
        return count_times(self.status, self.total, self.left_alone, self.runs)

    @classmethod
    def from_row(cls, row: Any, runs: Mapping[str, int] | None = None) -> Backfill:
        """Make a backfill from a row of the `backfills` table, and the number of its jobs by status."""
        facts = dict(row._mapping)
        facts["kwargs"] = decode_kwargs(facts["kwargs"], importing=False)
        facts["status"] = BackfillStatus(facts["status"])
        return cls(**facts, runs=runs or {})
