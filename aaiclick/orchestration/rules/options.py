"""The options of tasks and of workflows, as type checkers see them: the same for a decorator and for one call."""

from __future__ import annotations

from typing import Literal, TypedDict

from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.schedules import MissedRuns, Overlap
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.rules.triggers import Trigger


class TaskOptions(TypedDict, total=False):
    """What `@task(…)`, `.options(…)` and `create_task` take."""

    name: str
    max_retries: int | None
    retry: RetryPolicy | None
    timeout_s: float | None
    priority: int
    critical: bool
    stop_when_cut_off: bool
    when: Trigger


class JobOptions(TypedDict, total=False):
    """What `@job(…)`, `.options(…)` and `create_job` take."""

    name: str
    key: str | None
    priority: int
    preservation_mode: PreservationMode | str | None
    timeout_s: float | None
    fail_fast: bool


class EntryOptions(TypedDict, total=False):
    """What `register_job` and `upsert_registered_job` take beside what every entry has."""

    timezone: str | None
    missed_runs: MissedRuns | Literal["none", "latest", "all"] | None
    missed_max: int | None
    overlap: Overlap | Literal["allow", "skip", "queue"] | None
    time_kwarg: str | tuple[str, str] | None
    priority: int | None
    timeout_s: float | None
    fail_fast: bool | None
    keep_last: int | None
