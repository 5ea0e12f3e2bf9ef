"""`aaiclick metrics`"""

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from aaiclick.orchestration.factories import create_job
from aaiclick.orchestration.rules.metrics import METRICS, OTHERS
from tests.cli.conftest import Cli


def work() -> None:
    """A task's body; none is run here."""


def submit() -> None:
    asyncio.run(create_job("report", tasks=[{"entrypoint": f"{__name__}.work"}]))


def test_it_prints_what_prometheus_reads(cli: Cli) -> None:
    submit()
    answer = cli("metrics")
    assert (answer.code, answer.err) == (0, "")
    found = {
        sample.name: sample.value
        for each in text_string_to_metric_families(answer.out)
        for sample in each.samples
        if sample.labels.get("job", "report") == "report"
    }
    assert (found["jobs_created_total"], found["tasks_created_total"], found["task_queue_depth"]) == (1, 1, 1)


def test_as_json_by_the_same_names(cli: Cli, on_url, migrated_sql_url: str) -> None:
    on_url(migrated_sql_url)
    submit()
    shown = cli("metrics", "--json").data
    of_jobs = {name for name, metric in METRICS.items() if metric.labels == ("job",)}
    assert set(shown) - {"workers", "jobs", "reconcilers"} == of_jobs | {
        name for name, metric in METRICS.items() if not metric.labels
    }
    assert {job["job"]: job["jobs_created_total"] for job in shown["jobs"]} == {"report": 1, OTHERS: 0}
    assert [set(job) for job in shown["jobs"]] == [of_jobs | {"job"}] * 2
    assert (shown["jobs_created_total"], shown["workers_active"], shown["workers"]) == (1, 0, [])
    assert shown["reconcilers"] == []
    assert shown["task_duration_seconds"]["buckets"]["0.01"] == 0
