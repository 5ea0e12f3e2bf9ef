"""Whether spans are made, and which: the ids of a trace follow from those of the job and its runs.

So that nothing has to be carried or stored: whoever knows a job knows its trace, whoever knows a task and its epoch
knows the spans of that run and what they are part of. Nothing of OpenTelemetry is imported unless it is wanted.
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
    """What becomes of a task, one after the other: each is part of the one before."""

    SUBMIT = "submit"
    CLAIM = "claim"
    RUN = "run"
    REPORT = "report"


class RunKey(NamedTuple):
    """One attempt at a task of a job."""

    job_id: int
    task_id: int
    epoch: int


_spans: list[Spans] = []


def tracing() -> Spans | None:
    """Where spans go; None unless AAICLICK_OTEL wants them."""
    if _spans:
        return _spans[0]
    return _begin() if settings().otel else None


def _begin() -> Spans:
    try:
        from aaiclick.telemetry.spans import Spans  # here: nobody pays for what is off
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise MissingExtra(what="AAICLICK_OTEL=1", package=error.name, extra="otel") from None
    _spans[:] = [Spans()]
    return _spans[0]


def trace_with(spans: Spans | None) -> None:
    """Let spans go here from now on; None: as the settings say."""
    _spans[:] = [] if spans is None else [spans]


def trace_id_of(job_id: int) -> int:
    """The trace of a job."""
    return _derived(f"{job_id:d}", 16)


def span_id_of(step: Step, run: RunKey) -> int:
    """The span of one step."""
    which = f"{run.job_id:d}" if step is Step.SUBMIT else f"{run.task_id:d}.{run.epoch:d}"
    return _derived(f"{step} {which}", 8)


def _derived(text: str, size: int) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=size, person=b"aaiclick").digest()
    return int.from_bytes(digest) or 1  # zero means none
