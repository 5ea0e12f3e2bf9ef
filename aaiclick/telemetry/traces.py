"""Switches tracing on, and derives the ids of traces and spans from those of jobs and runs.

Because they are derived, trace contexts need not be passed on or stored: the trace id follows from the job id, the span
ids of a run and of their parents from task id and epoch. OpenTelemetry is imported only if tracing is on.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from aaiclick.config import settings
from aaiclick.errors import MissingExtra

if TYPE_CHECKING:
    from aaiclick.telemetry.spans import Spans


class Step(StrEnum):
    """The steps of a task that have spans, in order. The span of each is a child of the one before."""

    SUBMIT = "submit"
    CLAIM = "claim"
    RUN = "run"
    REPORT = "report"


class RunKey(NamedTuple):
    """Identifies one run: an attempt at a task of a job."""

    job_id: int
    task_id: int
    epoch: int


_spans: list[Spans] = []


def tracing() -> Spans | None:
    """Return the `Spans` of this process; None unless AAICLICK_OTEL is set.

    Raises MissingExtra if OpenTelemetry is not installed.
    """
    if _spans:
        return _spans[0]
    return _begin() if settings().otel else None


def _begin() -> Spans:
    try:
        from aaiclick.telemetry.spans import Spans  # here, so that OpenTelemetry is loaded only if tracing is on
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise MissingExtra(what="AAICLICK_OTEL=1", package=error.name, extra="otel") from None
    _spans[:] = [Spans()]
    return _spans[0]


def trace_with(spans: Spans | None) -> None:
    """Use these spans from now on; None returns to what the settings say."""
    _spans[:] = [] if spans is None else [spans]


def trace_id_of(job_id: int) -> int:
    """Return the trace id of a job."""
    return _derived(f"{job_id:d}", 16)


def span_id_of(step: Step, run: RunKey) -> int:
    """Return the span id of a step. The submission is one span for the whole job."""
    which = f"{run.job_id:d}" if step is Step.SUBMIT else f"{run.task_id:d}.{run.epoch:d}"
    return _derived(f"{step} {which}", 8)


def _derived(text: str, size: int) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=size, person=b"aaiclick").digest()
    return int.from_bytes(digest) or 1  # OpenTelemetry takes the id 0 as invalid
