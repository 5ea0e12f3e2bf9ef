"""`aaiclick metrics`: the numbers that monitoring asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aaiclick.cli.loop import wait_for
from aaiclick.cli.output import AsJson, show_json, show_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aaiclick.orchestration.rules.metrics import Histogram, Metrics


def metrics(as_json: AsJson = False) -> None:
    """Print the metrics, in the text format of Prometheus."""
    from aaiclick.orchestration.metrics import collect_metrics, to_text  # here, to keep start-up light

    found = wait_for(collect_metrics())
    if as_json:
        show_json(to_json(found))
    else:
        show_text(to_text(found).rstrip("\n"))


def to_json(found: Metrics) -> dict[str, Any]:
    """By their names; of each name of jobs, each live worker, with its id as a string, and each reconciler."""
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
