"""The metrics: their names as Prometheus scrapes them, their meaning, and arithmetic on their numbers.

METRICS is the single source: the output is made from it, and `python -m aaiclick.orchestration.rules.metrics` prints
`docs/reference/metrics.md` from it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from aaiclick.orchestration.rules.reconcilers import ReconcilerRecord
from aaiclick.orchestration.rules.states import CACHE_HIT, CACHE_MISS, LATE_REPORT

T = TypeVar("T")

QUEUE_COUNTED_MAX = 100_000
"""Counting the ready tasks ends here, so that its cost does not grow with the queue."""

WORKERS_SHOWN_MAX = 1_000
"""Workers that have series of their own."""


JOBS_SHOWN_MAX = 200
UNREGISTERED_SHOWN_MAX = 100
"""Job names that have series of their own, first come first served; and how many of them may be unregistered."""

OTHERS = " other"
"""The name under which all other jobs are summed up. No job has it, as no job's name begins with a blank."""


class Kind(StrEnum):
    """The type of a metric, as Prometheus names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """A row of METRICS: name, type, help text, labels and the buckets of a histogram in seconds."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    buckets_s: tuple[float, ...] = ()


_JOB_S = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_TASK_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
_WORKER = ("worker", "hostname")
_JOB = ("job",)
_RECONCILER = ("reconciler",)

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("jobs_created_total", Kind.COUNTER, "Jobs submitted.", _JOB),
            Metric("jobs_completed_total", Kind.COUNTER, "Jobs completed; a cleared job may complete again.", _JOB),
            Metric("jobs_failed_total", Kind.COUNTER, "Jobs that failed.", _JOB),
            Metric(
                "job_duration_seconds",
                Kind.HISTOGRAM,
                "Time from a job's first claim to its end, for jobs that completed or failed.",
                _JOB,
                buckets_s=_JOB_S,
            ),
            Metric("tasks_created_total", Kind.COUNTER, "Tasks submitted, or made by other tasks."),
            Metric("tasks_completed_total", Kind.COUNTER, "Tasks that completed."),
            Metric("tasks_failed_total", Kind.COUNTER, "Tasks that failed with no attempt left."),
            Metric(
                "task_duration_seconds",
                Kind.HISTOGRAM,
                "Time from claim to end of each attempt that completed or failed.",
                buckets_s=_TASK_S,
            ),
            Metric(
                "task_queue_depth",
                Kind.GAUGE,
                f"Tasks that are ready and wait for a worker; counting ends at {QUEUE_COUNTED_MAX}.",
            ),
            Metric("workers_active", Kind.GAUGE, "Workers whose session is live."),
            Metric(
                "worker_task_execution_time",
                Kind.GAUGE,
                "Seconds since a live worker claimed the oldest task that it still holds; 0 without any.",
                labels=_WORKER,
            ),
            Metric(
                "worker_heartbeat_age",
                Kind.GAUGE,
                "Seconds since the last heartbeat of a live worker.",
                labels=_WORKER,
            ),
            Metric(
                "worker_report_age",
                Kind.GAUGE,
                "Seconds for which a live worker has had results that it could not report; 0 without any.",
                labels=_WORKER,
            ),
            Metric(
                "task_late_reports_total",
                Kind.COUNTER,
                "Runs that reported their result after their task was lost, released, cleared or cancelled.",
            ),
            Metric("task_cache_hits_total", Kind.COUNTER, "Runs that got a cached result; no body ran."),
            Metric("task_cache_misses_total", Kind.COUNTER, "Runs that asked for a cached result and got none."),
            Metric("expectations_warned_total", Kind.COUNTER, "Data expectations that were not met, as a warning."),
            Metric("expectations_failed_total", Kind.COUNTER, "Data expectations that were not met, as an error."),
            Metric("reconciler_runs_total", Kind.COUNTER, "Number of runs of a reconciler.", _RECONCILER),
            Metric(
                "reconciler_work_total", Kind.COUNTER, "Number of things that a reconciler found to do.", _RECONCILER
            ),
            Metric("reconciler_failures_total", Kind.COUNTER, "Number of failed runs of a reconciler.", _RECONCILER),
            Metric(
                "reconciler_seconds_total", Kind.COUNTER, "Seconds that all runs of a reconciler took.", _RECONCILER
            ),
            Metric("reconciler_run_age", Kind.GAUGE, "Seconds since the last run of a reconciler.", _RECONCILER),
            Metric("reconciler_failing", Kind.GAUGE, "1 if the last run of a reconciler failed, else 0.", _RECONCILER),
        )
    }
)

JOB_COUNTERS = MappingProxyType(
    {"create": "jobs_created_total", "complete": "jobs_completed_total", "fail": "jobs_failed_total"}
)
"""The counter of each move of a job's event."""

TASK_COUNTERS = MappingProxyType(
    {
        "complete": "tasks_completed_total",
        "give_up": "tasks_failed_total",
        LATE_REPORT: "task_late_reports_total",
        CACHE_HIT: "task_cache_hits_total",
        CACHE_MISS: "task_cache_misses_total",
        "expect_warned": "expectations_warned_total",
        "expect_failed": "expectations_failed_total",
    }
)
"""The counter of each move of a task's event."""

GROWTH = "tasks_created_total"
GROWING_MOVES = ("create", "grow")
"""Moves of a job's events whose detail is the number of added tasks; they count for GROWTH."""

JOB_S, TASK_S = "job_duration_seconds", "task_duration_seconds"
ENDING_MOVES = ("complete", "fail")
"""Moves of jobs and tasks whose duration is measured."""

ALL = "+Inf"


@dataclass(frozen=True, slots=True)
class Histogram:
    """The number of values up to each bucket's limit in seconds, the number of all values, and their sum."""

    buckets: Mapping[float, int]
    count: int = 0
    total_s: float = 0.0


OF_RECONCILERS: Mapping[str, Callable[[ReconcilerRecord], float | None]] = MappingProxyType(
    {
        "reconciler_runs_total": attrgetter("runs"),
        "reconciler_work_total": attrgetter("done"),
        "reconciler_failures_total": attrgetter("failures"),
        "reconciler_seconds_total": attrgetter("seconds"),
        "reconciler_run_age": attrgetter("ran_s_ago"),
        "reconciler_failing": attrgetter("is_failing"),
    }
)
"""The value of each reconciler metric, read from its record; None if the reconciler never ran."""


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """The numbers of one live worker, in seconds."""

    worker_id: int
    hostname: str
    heartbeat_age_s: float
    execution_time_s: float
    report_age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobMetrics:
    """The numbers of all jobs of one name, or of all jobs under OTHERS."""

    name: str
    counters: Mapping[str, int]
    histograms: Mapping[str, Histogram]


@dataclass(frozen=True, slots=True)
class Metrics:
    """All numbers at one moment."""

    counters: Mapping[str, int]
    histograms: Mapping[str, Histogram]
    queue_depth: int = 0
    workers_active: int = 0
    workers: Sequence[WorkerMetrics] = field(default=())
    jobs: Sequence[JobMetrics] = field(default=())
    """The job counters and histograms by job name; their sums are those above."""
    reconcilers: Sequence[ReconcilerRecord] = field(default=())
    """The leader's reconcilers; the leader stores their numbers every half minute."""


Key = tuple[str, str]


class Amount(NamedTuple):
    """A count, and the sum of the measured seconds (0 for plain counters)."""

    number: int
    seconds: float = 0.0


Tally = dict[Key, Amount]
"""Amounts by metric name and bucket; the bucket of a counter is an empty text."""


def add(some: Tally, more: Tally) -> Tally:
    """Return the sum of two tallies."""
    total = dict(some)
    for key, amount in more.items():
        before = total.get(key, Amount(0))
        total[key] = Amount(before.number + amount.number, before.seconds + amount.seconds)
    return total


def counters_of(tally: Tally) -> dict[str, int]:
    """Return all counters of events in the order of METRICS; those that are not in the tally are zero."""
    names = [name for name, metric in METRICS.items() if metric.kind is Kind.COUNTER and metric.labels != _RECONCILER]
    return {name: tally.get((name, ""), Amount(0)).number for name in names}


def histograms_of(tally: Tally) -> dict[str, Histogram]:
    """Return all histograms in the order of METRICS."""
    return {name: _histogram(name, metric, tally) for name, metric in METRICS.items() if metric.buckets_s}


def _histogram(name: str, metric: Metric, tally: Tally) -> Histogram:
    buckets = {limit: tally.get((name, str(limit)), Amount(0)).number for limit in metric.buckets_s}
    whole = tally.get((name, ALL), Amount(0))
    return Histogram(buckets, whole.number, whole.seconds)


# ---------------------------------------------------------------- by the names of jobs


def admitted(known: Mapping[str, bool], found: Iterable[tuple[str, bool]]) -> set[str]:
    """Return the job names that get series of their own: the known ones, then found ones while there is room.

    Both give for each name whether it is registered. At most UNREGISTERED_SHOWN_MAX names are not, so that there is
    room for registered ones.
    """
    shown = set(known)
    plain = sum(not registered for registered in known.values())
    for name, registered in found:
        if name in shown or len(shown) >= JOBS_SHOWN_MAX or not (registered or plain < UNREGISTERED_SHOWN_MAX):
            continue
        shown.add(name)
        plain += not registered
    return shown


def jobs_of(tally: Tally, by_job: Mapping[str, Tally]) -> list[JobMetrics]:
    """Return the numbers of each job name in order, and under OTHERS the remainder of the whole tally."""
    rest = {key: amount for key, amount in tally.items() if METRICS[key[0]].labels == _JOB}
    for mine in by_job.values():
        rest = add(rest, {key: Amount(-amount.number, -amount.seconds) for key, amount in mine.items()})
    rest = {key: Amount(max(0, amount.number), max(0.0, amount.seconds)) for key, amount in rest.items()}
    every = [*((name, by_job[name]) for name in sorted(by_job)), (OTHERS, rest)]
    return [JobMetrics(name, _own(counters_of(mine)), _own(histograms_of(mine))) for name, mine in every]


def _own(found: Mapping[str, T]) -> dict[str, T]:
    return {name: value for name, value in found.items() if METRICS[name].labels == _JOB}


# ---------------------------------------------------------------- the page


def metrics_markdown() -> str:
    """Return the text of `docs/reference/metrics.md`."""
    lines = [
        "# Metrics",
        "",
        "<!-- printed by `python -m aaiclick.orchestration.rules.metrics`; a test compares -->",
        "",
        "`aaiclick metrics` prints them in the text format of Prometheus, `render_metrics()` gives that text, and "
        "`collect_metrics()` the numbers. How they are stored, and how to scrape them: "
        "[Monitoring](../guides/watching.md).",
        "",
        "| metric | kind | labels | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.meaning} |"
        for metric in METRICS.values()
    ]
    lines += ["", "Buckets, in seconds:", ""]
    lines += [
        f"- `{metric.name}`: {', '.join(f'{limit:g}' for limit in metric.buckets_s)}"
        for metric in METRICS.values()
        if metric.buckets_s
    ]
    return "\n".join([*lines, *_OF_JOBS, *_OF_RECONCILERS, *_OF_OTHERS, ""])


_OF_JOBS = (
    "",
    f"`job` is the job's name. The first {JOBS_SHOWN_MAX} names have series of their own, of which at most "
    f"{UNREGISTERED_SHOWN_MAX} are of jobs that are not registered; all others are summed up under `{OTHERS!r}`, which "
    "begins with a blank, as no job's name does. `sum without (job)` gives all jobs. Where Prometheus names its "
    "targets by a label `job` too, it calls this one `exported_job`, unless `honor_labels` is set.",
)

_OF_RECONCILERS = (
    "",
    "`reconciler` is one of [those that the leader calls](../concepts/sessions-and-recovery.md#reconcilers). Their "
    "numbers are stored every half minute, and continue under the next leader.",
)

_OF_OTHERS = (
    "",
    "Names that autoscalers of GPU schedulers query, and the metrics to use instead:",
    "",
    "| asked for | here |",
    "|---|---|",
    "| `gpu_orchestrator_job_queue_depth` | `task_queue_depth`: there is one queue, in the database, and no streams |",
    "| `gpu_orchestrator_job_latency_seconds` | `job_duration_seconds`, `task_duration_seconds` |",
    "| `gpu_orchestrator_leases_active`, `…_leases_free`, `…_worker_pools_total`, `…_worker_pool_workers`, "
    "`…_gpu_mem_used_pct` | none: there are no leases of resources and no pools yet |",
)


if __name__ == "__main__":
    sys.stdout.write(metrics_markdown())
