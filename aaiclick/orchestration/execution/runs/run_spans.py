"""The spans of a worker's runs: claimed, run, reported. Kept apart so that a worker without tracing pays nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from aaiclick.orchestration.models import Claim, Failure, Report
from aaiclick.orchestration.rules.naming.untrusted_entrypoints import shown
from aaiclick.telemetry.traces import RunKey, Step, tracing

if TYPE_CHECKING:
    from aaiclick.telemetry.spans import Attributes, Spans

UNREPORTED_MAX = 100_000
"""Runs whose reports are on their way; those of a lost session never arrive."""

Key = tuple[int, int]


def run_spans() -> RunSpans | None:
    """What makes the spans of a worker; None while nobody wants any."""
    spans = tracing()
    return None if spans is None else RunSpans(spans)


class RunSpans:
    """Remembers when each run began and ended, and makes its spans when they are over."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._began: dict[Key, int] = {}
        self._ended: dict[Key, tuple[Claim, int]] = {}

    def claimed(self, claims: Sequence[Claim], asked_ns: int) -> None:
        """These came of one call, asked then."""
        now = time.time_ns()
        for claim in claims:
            self._spans.add(Step.CLAIM, key_of(claim), asked_ns, now, _facts(claim))

    def began(self, claim: Claim) -> None:
        """A body is about to begin."""
        self._began[(claim.task_id, claim.epoch)] = time.time_ns()

    def ended(self, claim: Claim, report: Report | None) -> None:
        """A body is over; without a report, it was stopped."""
        key, now = (claim.task_id, claim.epoch), time.time_ns()
        began = self._began.pop(key, now)
        error = "stopped" if report is None else _kind_of_error(report)
        self._spans.add(Step.RUN, key_of(claim), began, now, _facts(claim), error=error)
        if report is not None:
            if len(self._ended) >= UNREPORTED_MAX:
                self._ended.clear()
            self._ended[key] = (claim, now)

    def reported(self, reports: Sequence[Report], accepted: Collection[Key]) -> None:
        """These were acknowledged; those that were not accepted came too late."""
        now = time.time_ns()
        for report in reports:
            found = self._ended.pop((report.task_id, report.epoch), None)
            if found is not None:
                late = "" if (report.task_id, report.epoch) in accepted else "late"
                self._spans.add(Step.REPORT, key_of(found[0]), found[1], now, _facts(found[0]), error=late)


def key_of(claim: Claim) -> RunKey:
    """The run of a claim."""
    return RunKey(claim.job_id, claim.task_id, claim.epoch)


def _facts(claim: Claim) -> Attributes:
    return {
        "job.id": claim.job_id,
        "task.id": claim.task_id,
        "task.name": claim.name,
        "task.entrypoint": shown(claim.entrypoint),
        "epoch": claim.epoch,
        "attempt": claim.attempt,
        "worker.id": claim.worker_id,
    }


def _kind_of_error(report: Report) -> str:
    return (report.error_types[0] if report.error_types else "crashed") if isinstance(report, Failure) else ""
