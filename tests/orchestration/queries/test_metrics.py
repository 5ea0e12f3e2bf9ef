"""The numbers, and their text: Prometheus' own parser reads it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.orchestration import collect_metrics, render_metrics
from aaiclick.orchestration.control.accounts import Accounts
from aaiclick.orchestration.queries.metrics import CONTENT_TYPE, to_text
from aaiclick.orchestration.rules.metrics import (
    METRICS,
    OTHERS,
    JobMetrics,
    Kind,
    Metrics,
    WorkerMetrics,
    counters_of,
    histograms_of,
)
from tests.support.front_door import state as state
from tests.support.orchestra import Orchestra, failing, make, orchestra


@pytest.fixture
async def stage(state: str) -> AsyncIterator[Orchestra]:
    async with orchestra(state) as opened:
        yield opened


def parsed(text: str) -> dict[str, list[Sample]]:
    """All samples by the name of their family; a counter's family has no `_total`."""
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def value(samples: list[Sample], name: str, **labels: str) -> float:
    (found,) = [each.value for each in samples if each.name == name and labels.items() <= each.labels.items()]
    return found


async def lead(stage: Orchestra) -> None:
    """Somebody leads for a moment."""
    accounts = Accounts(stage.database, ["fire_schedules", "sweep_tables", "work_off_ripples"], SYSTEM_CLOCK)
    accounts.note("fire_schedules", 3, 0.25)
    accounts.note("sweep_tables", 0, 1.5, ValueError("no"))
    await accounts.write(1)


async def test_every_metric_is_in_the_text_with_its_kind(stage: Orchestra) -> None:
    await lead(stage)
    families = {family.name: family for family in text_string_to_metric_families(await render_metrics())}
    for name, metric in METRICS.items():
        family = families.pop(name.removesuffix("_total"))
        assert (family.type, family.documentation) == (str(metric.kind), metric.meaning)
        if metric.kind is not Kind.HISTOGRAM:
            assert {sample.name for sample in family.samples} == {name}
    assert families == {}


async def test_the_numbers_are_those_of_what_happened(stage: Orchestra) -> None:
    await stage.submit(make("good"), make("bad"))
    await stage.drain(failing("bad"))
    await stage.submit(make("a"), make("b"), make("c"))
    await stage.claim(1)
    found = parsed(await render_metrics())
    assert value(found["tasks_created"], "tasks_created_total") == 5
    assert value(found["tasks_failed"], "tasks_failed_total") == 1
    assert value(found["jobs_failed"], "jobs_failed_total", job="job") == 1
    assert value(found["jobs_failed"], "jobs_failed_total", job=OTHERS) == 0
    durations = found["job_duration_seconds"]
    assert value(durations, "job_duration_seconds_count", job="job") == 1
    assert value(found["task_queue_depth"], "task_queue_depth") == 2
    assert value(found["workers_active"], "workers_active") == 1
    took = found["task_duration_seconds"]
    assert value(took, "task_duration_seconds_count") == value(took, "task_duration_seconds_bucket", le="+Inf") == 2
    assert value(took, "task_duration_seconds_sum") >= 0
    worker = {"worker": str(stage.worker), "hostname": "here"}
    assert value(found["worker_heartbeat_age"], "worker_heartbeat_age", **worker) >= 0
    assert value(found["worker_task_execution_time"], "worker_task_execution_time", **worker) > 0
    assert value(found["worker_report_age"], "worker_report_age", **worker) == 0
    await stage.coordinator.beat(stage.worker, unreported_s=95)
    found = parsed(await render_metrics())
    assert value(found["worker_report_age"], "worker_report_age", **worker) >= 95


async def test_what_the_leader_does_is_told_by_reconcilers(stage: Orchestra) -> None:
    await lead(stage)
    found = parsed(await render_metrics())
    fired, swept = {"reconciler": "fire_schedules"}, {"reconciler": "sweep_tables"}
    assert value(found["reconciler_runs"], "reconciler_runs_total", **fired) == 1
    assert value(found["reconciler_work"], "reconciler_work_total", **fired) == 3
    assert value(found["reconciler_seconds"], "reconciler_seconds_total", **swept) == 1.5
    assert value(found["reconciler_failures"], "reconciler_failures_total", **swept) == 1
    assert [value(found["reconciler_failing"], "reconciler_failing", **each) for each in (fired, swept)] == [0, 1]
    assert value(found["reconciler_run_age"], "reconciler_run_age", **fired) >= 0
    ran = {sample.labels["reconciler"] for sample in found["reconciler_run_age"]}
    assert ran == {"fire_schedules", "sweep_tables"}  # the third never ran


async def test_collecting_gives_what_is_rendered(stage: Orchestra) -> None:
    await stage.submit(make())
    found = await collect_metrics()
    assert found.counters["jobs_created_total"] == 1
    assert 'le="+Inf"' in to_text(found)


def test_names_of_jobs_are_escaped() -> None:
    odd = 'a"b\\c\nd é日'
    numbers = dict.fromkeys(("jobs_created_total", "jobs_completed_total", "jobs_failed_total"), 3)
    job = JobMetrics(odd, numbers, {"job_duration_seconds": histograms_of({})["job_duration_seconds"]})
    text = to_text(Metrics(counters_of({}), histograms_of({}), jobs=[job]))
    (sample,) = parsed(text)["jobs_created"]
    assert (sample.labels, sample.value) == ({"job": odd}, 3)


def test_names_of_hosts_are_escaped() -> None:
    odd = 'a"b\\c\nd'
    worker = WorkerMetrics(7, odd, 1.5, 0.0)
    text = to_text(Metrics(counters_of({}), histograms_of({}), 0, 1, [worker]))
    (sample,) = parsed(text)["worker_heartbeat_age"]
    assert (sample.labels, sample.value) == ({"worker": "7", "hostname": odd}, 1.5)


def test_the_text_is_announced_as_the_client_does() -> None:
    from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

    assert CONTENT_TYPE == CONTENT_TYPE_PLAIN_0_0_4


def test_who_shows_no_metrics_does_not_load_the_client() -> None:
    asked = "import sys, aaiclick.orchestration.queries.metrics; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], timeout=60).returncode == 0
