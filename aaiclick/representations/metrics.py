"""Metrics: as the text that monitoring reads, and as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from aaiclick.orchestration.rules.metrics import Histogram, Metrics


class MetricsAnswer(TypedDict):
    """Metrics in the text format of Prometheus."""

    text: str


def metrics_numbers(found: Metrics) -> dict[str, Any]:
    """Return all metrics by their names; `jobs`, `workers` and `reconcilers` have those of each."""
    from aaiclick.orchestration.rules.metrics import OF_RECONCILERS  # here, to keep start-up light

    jobs = [{"job": job.name} | dict(job.counters) | _histograms(job.histograms) for job in found.jobs]
    workers = [
        {
            "worker": str(worker.worker_id),
            "hostname": worker.hostname,
            "worker_heartbeat_age": worker.heartbeat_age_s,
            "worker_task_execution_time": worker.execution_time_s,
            "worker_report_age": worker.report_age_s,
        }
        for worker in found.workers
    ]
    depths = {"task_queue_depth": found.queue_depth, "workers_active": found.workers_active}
    numbers = dict(found.counters) | _histograms(found.histograms) | depths
    reconcilers = [
        {"reconciler": record.name} | {name: value(record) for name, value in OF_RECONCILERS.items()}
        for record in found.reconcilers
    ]
    return numbers | {"jobs": jobs, "workers": workers, "reconcilers": reconcilers}


def _histograms(found: Mapping[str, Histogram]) -> dict[str, Any]:
    return {
        name: {
            "buckets": {f"{limit:g}": number for limit, number in histogram.buckets.items()},
            "count": histogram.count,
            "sum": histogram.total_s,
        }
        for name, histogram in found.items()
    }
