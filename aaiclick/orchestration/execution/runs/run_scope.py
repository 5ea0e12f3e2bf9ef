"""What goes on inside a run is told apart: its log lines carry its fields, its spans belong to its own."""

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
    """While this lasts, whatever is logged or traced here is about this run."""
    spans = tracing()
    return bound(**fields_of(claim)) if spans is None else _traced(claim, spans)


@contextmanager
def _traced(claim: Claim, spans: Spans) -> Iterator[None]:
    with bound(**fields_of(claim)), spans.inside(key_of(claim)):
        yield


def fields_of(claim: Claim) -> dict[str, Field]:
    """The fields of a run."""
    return {"job": claim.job_id, "task": claim.task_id, "epoch": claim.epoch, "worker": claim.worker_id}


def about_run(claim: Claim) -> dict[str, Mapping[str, Field]]:
    """The fields of a run, for one line."""
    return about(**fields_of(claim))
