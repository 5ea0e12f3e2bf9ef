"""The spans of a worker's runs: claim, run and report. A worker without tracing does not create a RunSpans."""

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
"""The maximum number of ended runs to remember until their reports are acknowledged. Those of a lost session never are,
so all are forgotten when the limit is reached."""

Key = tuple[int, int]


def run_spans() -> RunSpans | None:
    """Return a new RunSpans; None if tracing is off."""
    spans = tracing()
    return None if spans is None else RunSpans(spans)


class RunSpans:
    """Remembers when each run began and ended, and adds a span for each step that has finished."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans
        self._began: dict[Key, int] = {}
        self._ended: dict[Key, tuple[Claim, int]] = {}

    def claimed(self, claims: Sequence[Claim], asked_ns: int) -> None:
        """Add the spans of claims that came from one call, made at `asked_ns`."""
        now = time.time_ns()
        for claim in claims:
            self._spans.add(Step.CLAIM, key_of(claim), asked_ns, now, _facts(claim))

    def began(self, claim: Claim) -> None:
        """Note that a body is about to begin."""
        self._began[(claim.task_id, claim.epoch)] = time.time_ns()

    def ended(self, claim: Claim, report: Report | None) -> None:
        """Add the span of a body that has ended. Without a report it was stopped."""
        key, now = (claim.task_id, claim.epoch), time.time_ns()
        began = self._began.pop(key, now)
        error = "stopped" if report is None else _kind_of_error(report)
        self._spans.add(Step.RUN, key_of(claim), began, now, _facts(claim), error=error)
        if report is not None:
            if len(self._ended) >= UNREPORTED_MAX:
                self._ended.clear()
            self._ended[key] = (claim, now)

    def reported(self, reports: Sequence[Report], accepted: Collection[Key]) -> None:
        """Add the spans of acknowledged reports. Those that were not accepted get the error `late`."""
        now = time.time_ns()
        for report in reports:
            found = self._ended.pop((report.task_id, report.epoch), None)
            if found is not None:
                late = "" if (report.task_id, report.epoch) in accepted else "late"
                self._spans.add(Step.REPORT, key_of(found[0]), found[1], now, _facts(found[0]), error=late)


def key_of(claim: Claim) -> RunKey:
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
