"""What goes on inside a run is told apart: its log lines carry its fields, its spans belong to its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from aaiclick.orchestration.models import Claim
from aaiclick.telemetry.fields import Field, about, bound


@contextmanager
def in_scope_of(claim: Claim) -> Iterator[None]:
    """While this lasts, whatever is logged here is about this run."""
    with bound(**fields_of(claim)):
        yield


def fields_of(claim: Claim) -> dict[str, Field]:
    """The fields of a run."""
    return {"job": claim.job_id, "task": claim.task_id, "epoch": claim.epoch, "worker": claim.worker_id}


def about_run(claim: Claim) -> dict[str, Mapping[str, Field]]:
    """The fields of a run, for one line."""
    return about(**fields_of(claim))
