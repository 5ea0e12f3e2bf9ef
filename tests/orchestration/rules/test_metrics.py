"""The names of metrics, and adding up."""

from __future__ import annotations

from pathlib import Path

import pytest

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.metrics import (
    ALL,
    GROWTH,
    JOB_COUNTERS,
    JOB_S,
    JOBS_SHOWN_MAX,
    METRICS,
    OF_RECONCILERS,
    OTHERS,
    TASK_COUNTERS,
    TASK_S,
    UNREGISTERED_SHOWN_MAX,
    Amount,
    Kind,
    add,
    admitted,
    counters_of,
    histograms_of,
    jobs_of,
    metrics_markdown,
)
from aaiclick.orchestration.rules.reconcilers import ReconcilerRecord
from aaiclick.orchestration.rules.states import JOB_MOVES, TASK_MOVES, TASK_NOTES
from aaiclick.orchestration.rules.validation import check_name

PROJECT = Path(__file__).parents[3]

SPECIFIED = [
    "jobs_created_total",
    "jobs_completed_total",
    "jobs_failed_total",
    "job_duration_seconds",
    "tasks_created_total",
    "tasks_completed_total",
    "tasks_failed_total",
    "task_duration_seconds",
    "task_queue_depth",
    "workers_active",
    "worker_task_execution_time",
    "worker_heartbeat_age",
]


def test_the_names_are_those_of_the_specification_and_some_of_our_own() -> None:
    own = ["worker_report_age", "task_late_reports_total", "task_cache_hits_total", "task_cache_misses_total"]
    own += ["expectations_warned_total", "expectations_failed_total"]
    assert list(METRICS) == [*SPECIFIED, *own, *OF_RECONCILERS]


def test_numbers_of_reconcilers_are_those_with_their_label() -> None:
    assert list(OF_RECONCILERS) == [name for name, metric in METRICS.items() if metric.labels == ("reconciler",)]
    never = ReconcilerRecord("a")
    assert [value(never) for value in OF_RECONCILERS.values()] == [0, 0, 0, 0.0, None, False]


def test_every_counter_is_counted_from_moves_that_there_are() -> None:
    counted = {*JOB_COUNTERS.values(), *TASK_COUNTERS.values(), GROWTH}
    counters = {name for name, metric in METRICS.items() if metric.kind is Kind.COUNTER}
    assert counted == counters - set(OF_RECONCILERS)
    assert set(JOB_COUNTERS) - {"create"} <= set(JOB_MOVES)
    assert set(TASK_COUNTERS) <= {*TASK_MOVES, *TASK_NOTES}


def test_histograms_are_those_with_buckets_and_these_grow() -> None:
    with_buckets = {name for name, metric in METRICS.items() if metric.buckets_s}
    assert with_buckets == {JOB_S, TASK_S} == {name for name in METRICS if METRICS[name].kind is Kind.HISTOGRAM}
    for name in with_buckets:
        assert list(METRICS[name].buckets_s) == sorted(set(METRICS[name].buckets_s))


def test_adding_up_leaves_both_as_they_were() -> None:
    some, more = {("a", ""): Amount(1, 0.5)}, {("a", ""): Amount(2, 0.25), ("b", ""): Amount(3)}
    assert add(some, more) == {("a", ""): Amount(3, 0.75), ("b", ""): Amount(3)}
    assert some == {("a", ""): Amount(1, 0.5)}


def test_what_was_never_counted_is_zero() -> None:
    assert set(counters_of({}).values()) == {0}
    took = histograms_of({(TASK_S, "0.01"): Amount(2), (TASK_S, ALL): Amount(5, 7.5)})[TASK_S]
    assert (took.buckets[0.01], took.buckets[0.05], took.count, took.total_s) == (2, 0, 5, 7.5)


def test_the_page_of_the_manual_is_up_to_date() -> None:
    page = (PROJECT / "docs" / "reference" / "metrics.md").read_text()
    assert page == metrics_markdown(), "run: python -m aaiclick.orchestration.rules.metrics > docs/reference/metrics.md"


def test_names_get_numbers_of_their_own_as_they_come_and_some_room_is_for_registered_ones() -> None:
    plain = [(f"p{number}", False) for number in range(150)]
    entries = [(f"r{number}", True) for number in range(150)]
    shown = admitted({}, [*plain, *entries])
    assert shown == {name for name, _ in (*plain[:UNREGISTERED_SHOWN_MAX], *entries[:100])}
    assert len(shown) == JOBS_SHOWN_MAX
    assert admitted(dict(plain[:3]), [("p1", False)]) == {"p0", "p1", "p2"}
    assert admitted(dict.fromkeys(map(str, range(250)), False), [("new", True)]) == set(map(str, range(250)))


def test_what_is_left_of_the_whole_is_of_all_others() -> None:
    whole = {("jobs_created_total", ""): Amount(5), ("tasks_created_total", ""): Amount(9)}
    mine, others = jobs_of(whole, {"a": {("jobs_created_total", ""): Amount(2)}})
    assert (mine.name, mine.counters["jobs_created_total"]) == ("a", 2)
    assert (others.name, others.counters["jobs_created_total"]) == (OTHERS, 3)
    assert "tasks_created_total" not in others.counters
    with pytest.raises(InputError):
        check_name(OTHERS)
