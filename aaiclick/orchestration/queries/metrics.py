"""Metrics for monitoring: collected from the database, and rendered in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.metrics import (
    ALL,
    METRICS,
    OF_RECONCILERS,
    Histogram,
    Kind,
    Metric,
    Metrics,
    WorkerMetrics,
)
from aaiclick.orchestration.store.reading.metrics import read_metrics

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The Content-Type of the text that `render_metrics` returns."""

_VALUES: Mapping[str, Callable[[WorkerMetrics], float]] = {
    "worker_heartbeat_age": attrgetter("heartbeat_age_s"),
    "worker_task_execution_time": attrgetter("execution_time_s"),
    "worker_report_age": attrgetter("report_age_s"),
}


async def collect_metrics() -> Metrics:
    """Read all metrics, from a replica if there is one. The cost does not grow with the number of jobs and tasks."""
    async with connected() as database:
        return await database.read(read_metrics, stale_ok=True)


async def render_metrics() -> str:
    """Read all metrics and return them in the text format of Prometheus."""
    return to_text(await collect_metrics())


def to_text(found: Metrics) -> str:
    """Return these metrics in the text format of Prometheus."""
    from prometheus_client import generate_latest  # here: only rendering metrics needs the package

    text: bytes = generate_latest(_Shown(found))  # it calls nothing but collect()
    return text.decode()


class _Shown:
    """A registry for `prometheus_client`, reduced to the method that `generate_latest` calls."""

    def __init__(self, found: Metrics) -> None:
        self.found = found

    def collect(self) -> Iterable[Family]:
        return list(_families(self.found))


def _series(found: Metrics, metric: Metric) -> list[tuple[list[str], Mapping[str, int], Mapping[str, Histogram]]]:
    """Return (label values, counters, histograms) for each job name if the metric has labels, else for all jobs."""
    if metric.labels:
        return [([job.name], job.counters, job.histograms) for job in found.jobs]
    return [([], found.counters, found.histograms)]


def _families(found: Metrics) -> Iterator[Family]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    gauges = {"task_queue_depth": found.queue_depth, "workers_active": found.workers_active}
    for name, metric in METRICS.items():
        if name in OF_RECONCILERS:
            kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            of_each = kind(name, metric.meaning, labels=metric.labels)
            for record in found.reconcilers:
                if (number := OF_RECONCILERS[name](record)) is not None:
                    of_each.add_metric([record.name], number)
            yield of_each
        elif metric.kind is Kind.COUNTER:
            counter = CounterMetricFamily(name, metric.meaning, labels=metric.labels)
            for labels, counters, _ in _series(found, metric):
                counter.add_metric(labels, counters[name])
            yield counter
        elif metric.kind is Kind.HISTOGRAM:
            family = HistogramMetricFamily(name, metric.meaning, labels=metric.labels)
            for labels, _, histograms in _series(found, metric):
                histogram = histograms[name]
                buckets = [(str(limit), float(number)) for limit, number in histogram.buckets.items()]
                family.add_metric(labels, [*buckets, (ALL, float(histogram.count))], histogram.total_s)
            yield family
        elif name in gauges:
            yield GaugeMetricFamily(name, metric.meaning, value=gauges[name])
        else:
            gauge = GaugeMetricFamily(name, metric.meaning, labels=metric.labels)
            for worker in found.workers:
                gauge.add_metric([str(worker.worker_id), worker.hostname], _VALUES[name](worker))
            yield gauge
