"""The logging and tracing scope of a run: log lines carry its fields, and spans are children of its span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from aaiclick.orchestration.execution.runs.run_spans import key_of
from aaiclick.orchestration.models import Claim
from aaiclick.telemetry.fields import Field, about, bound
from aaiclick.telemetry.traces import tracing

if TYPE_CHECKING:
    from aaiclick.telemetry.spans import Spans


def in_scope_of(claim: Claim) -> AbstractContextManager[None]:
    """Return a context manager that adds the run's fields to log lines, and makes its span the parent of spans."""
    spans = tracing()
    return bound(**fields_of(claim)) if spans is None else _traced(claim, spans)


@contextmanager
def _traced(claim: Claim, spans: Spans) -> Iterator[None]:
    with bound(**fields_of(claim)), spans.inside(key_of(claim)):
        yield


def fields_of(claim: Claim) -> dict[str, Field]:
    """Return the log fields of a run."""
    return {"job": claim.job_id, "task": claim.task_id, "epoch": claim.epoch, "worker": claim.worker_id}


def about_run(claim: Claim) -> dict[str, Mapping[str, Field]]:
    """Return the `extra` argument that adds the fields of a run to one log line."""
    return about(**fields_of(claim))
