"""The other rows that people read: runs, events, workers, dependencies, registered jobs and their times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from aaiclick.orchestration.rules.schedules import BackfillStatus, FireOutcome, MissedRuns, Overlap, count_times
from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.rules.values.encoding import decode_kwargs


class _Row:
    @classmethod
    def from_row(cls, row: Any) -> Self:
        """The row as the database has it."""
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


@dataclass(slots=True, frozen=True)
class Event(_Row):
    """The ledger row of a transition."""

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
    """For how long it had owed its oldest report, at its last heartbeat."""

    @classmethod
    def from_row(cls, row: Any) -> Worker:
        """The worker as the database has it."""
        facts = dict(row._mapping)
        facts["status"] = WorkerStatus(facts["status"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class RegisteredJob(_Row):
    """A catalogue entry: entrypoint, defaults, schedule."""

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
    """The parameter that gets the time for which a scheduled run runs; two, as in `start,end`, get its interval."""
    priority: int
    timeout_s: float | None
    fail_fast: bool
    keep_last: int | None
    """So many of its ended runs are kept, however old they are, and no others; None: by their age."""

    @property
    def time_names(self) -> list[str]:
        """The parameters that a scheduled run gets its time, or its interval, by."""
        return self.time_kwarg.split(",") if self.time_kwarg else []

    @classmethod
    def from_row(cls, row: Any) -> RegisteredJob:
        """An entry as the database has it."""
        facts = dict(row._mapping)
        facts["default_kwargs"] = decode_kwargs(facts["default_kwargs"], importing=False)
        facts["missed_runs"] = MissedRuns(facts["missed_runs"])
        facts["overlap"] = Overlap(facts["overlap"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class Fire(_Row):
    """What became of one time of a schedule."""

    registered_job_id: int
    fire_at: datetime
    outcome: FireOutcome
    job_id: int | None
    backfill_id: int | None
    created_at: datetime

    @classmethod
    def from_row(cls, row: Any) -> Fire:
        """A time as the database has it."""
        facts = dict(row._mapping)
        facts["outcome"] = FireOutcome(facts["outcome"])
        return cls(**facts)


@dataclass(slots=True, frozen=True)
class Backfill(_Row):
    """A range of past times of a schedule that is being run, so many at once."""

    id: int
    registered_job_id: int
    schedule: str
    timezone: str
    kwargs: dict[str, Any]
    start_at: datetime
    end_at: datetime
    next_at: datetime
    """All times before this are done with."""
    parallel_max: int
    status: BackfillStatus
    created_at: datetime
    completed_at: datetime | None
    force: bool = False
    """Times that have run are run again."""
    failed_only: bool = False
    """Only times are run whose last run failed."""
    from_outside: bool = False
    """Its arguments came from outside: what they name is judged where its runs run."""
    total: int = 0
    left_alone: int = 0
    runs: Mapping[str, int] = field(default_factory=dict)
    """Its runs by their status, as of now."""

    @property
    def counts(self) -> dict[str, int]:
        """Its times by what became of them, as of now."""
        return count_times(self.status, self.total, self.left_alone, self.runs)

    @classmethod
    def from_row(cls, row: Any, runs: Mapping[str, int] | None = None) -> Backfill:
        """A backfill as the database has it; with the number of its runs by status."""
        facts = dict(row._mapping)
        facts["kwargs"] = decode_kwargs(facts["kwargs"], importing=False)
        facts["status"] = BackfillStatus(facts["status"])
        return cls(**facts, runs=runs or {})
