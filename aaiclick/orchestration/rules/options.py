"""TypedDicts of the options of tasks, jobs and registered jobs; decorators and single calls take the same ones."""

from __future__ import annotations

from typing import Literal, TypedDict

from aaiclick.orchestration.rules.cache_policies import CacheMode, CacheOption, Key
from aaiclick.orchestration.rules.placement import Placement
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.schedules.fires import MissedRuns, Overlap
from aaiclick.orchestration.rules.states import PreservationMode
from aaiclick.orchestration.rules.triggers import Trigger


class TaskOptions(TypedDict, total=False):
    """The options of `@task(…)`, `.options(…)` and `create_task`."""

    name: str
    executor: str
    max_retries: int | None
    retry: RetryPolicy | None
    timeout_s: float | None
    priority: int
    critical: bool
    stop_when_cut_off: bool
    when: Trigger
    placement: Placement | None
    cache: CacheOption
    idempotency_key: Key | None


class JobOptions(TypedDict, total=False):
    """The options of `@job(…)`, `.options(…)` and `create_job`."""

    name: str
    key: str | None
    priority: int
    preservation_mode: PreservationMode | str | None
    timeout_s: float | None
    fail_fast: bool
    placement: Placement | None
    cache_mode: CacheMode | Literal["use", "refresh", "off"]


class EntryOptions(TypedDict, total=False):
    """The optional arguments of `register_job` and `upsert_registered_job`."""

    timezone: str | None
    missed_runs: MissedRuns | Literal["none", "latest", "all"] | None
    missed_max: int | None
    overlap: Overlap | Literal["allow", "skip", "queue"] | None
    time_kwarg: str | tuple[str, str] | None
    priority: int | None
    timeout_s: float | None
    fail_fast: bool | None
    keep_last: int | None
    placement: Placement | None
