"""Registered jobs: the catalogue and its schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from aaiclick.orchestration.rules.values.shown_values import RESULT_BYTES_MAX, show_arguments
from aaiclick.representations.fields import Id, Time, facts_of, time_text

if TYPE_CHECKING:
    from aaiclick.orchestration.models import RegisteredJob


class RegisteredJobAnswer(TypedDict):
    """A registered job."""

    id: Id
    name: str
    entrypoint: str
    enabled: bool
    schedule: str | None
    timezone: str
    missed_runs: str
    missed_max: int
    overlap: str
    time_kwarg: str | None
    preservation_mode: str | None
    priority: int
    timeout_s: float | None
    fail_fast: bool
    keep_last: int | None
    placement: Mapping[str, Any] | None
    resources: Mapping[str, float] | None
    next_run_at: Time | None
    created_at: Time
    updated_at: Time


class RegisteredJobList(TypedDict):
    """All registered jobs, by name."""

    registered_jobs: list[RegisteredJobAnswer]


class RegisteredJobHere(RegisteredJobAnswer):
    """A registered job as commands show it, with its default arguments."""

    default_kwargs: dict[str, Any]


class RegisteredJobDetail(RegisteredJobHere):
    """A registered job with its next times."""

    next_runs: list[Time]


def registered_job_answer(entry: RegisteredJob) -> RegisteredJobAnswer:
    """Return an entry as JSON data."""
    return facts_of(RegisteredJobAnswer, entry)


def registered_job_list(entries: Sequence[RegisteredJob]) -> RegisteredJobList:
    """Return all entries."""
    return RegisteredJobList(registered_jobs=[registered_job_answer(entry) for entry in entries])


def registered_job_here(entry: RegisteredJob) -> RegisteredJobHere:
    """Return an entry with its defaults; those whose names say that they are secrets are masked."""
    return facts_of(RegisteredJobHere, entry, default_kwargs=show_arguments(entry.default_kwargs, RESULT_BYTES_MAX))


def registered_job_detail(entry: RegisteredJob, times: Sequence[datetime]) -> RegisteredJobDetail:
    """Return an entry with its next times."""
    return RegisteredJobDetail(**registered_job_here(entry), next_runs=[time_text(time) for time in times])
