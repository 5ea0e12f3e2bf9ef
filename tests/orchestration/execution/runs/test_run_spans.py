"""What a worker does with a task becomes spans: claimed, run, reported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aaiclick.config import reset_settings
from aaiclick.orchestration import ajob_test, create_job, create_task, get_runs_for_task, register_job, run_job
from aaiclick.orchestration.execution.runs import run_spans
from aaiclick.orchestration.execution.runs.run_spans import RunSpans
from aaiclick.orchestration.models import Done
from aaiclick.telemetry.spans import Spans
from aaiclick.telemetry.traces import RunKey, Step, span_id_of, trace_id_of, trace_with
from tests.support import bodies, secretive
from tests.support.bodies import claim_of
from tests.support.front_door import local

__all__ = ["local"]


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    trace_with(Spans(SimpleSpanProcessor(exporter)))
    yield exporter
    trace_with(None)


def names(exported: InMemorySpanExporter) -> list[str]:
    return [span.name for span in exported.get_finished_spans()]


def by_id(exported: InMemorySpanExporter) -> dict[int, ReadableSpan]:
    return {span.context.span_id: span for span in exported.get_finished_spans() if span.context}


async def test_a_job_is_one_trace_from_submit_to_report(local: object, exported: InMemorySpanExporter) -> None:
    good, bad = create_task(bodies.echo, {"value": "canary-argument"}), create_task(secretive.fail, {"secret": "x"})
    job = await ajob_test(await create_job("traced", tasks=[good, bad]))
    found = by_id(exported)
    assert sorted(names(exported)) == ["claim", "claim", "report", "report", "run", "run", "submit"]
    assert {span.context.trace_id for span in found.values() if span.context} == {trace_id_of(job.id)}
    for task in (good, bad):
        (run,) = await get_runs_for_task(task.id)
        key = RunKey(job.id, task.id, run.epoch)
        for step, before in ((Step.CLAIM, Step.SUBMIT), (Step.RUN, Step.CLAIM), (Step.REPORT, Step.RUN)):
            parent = found[span_id_of(step, key)].parent
            assert parent is not None
            assert parent.span_id == span_id_of(before, key)
        facts = dict(found[span_id_of(Step.RUN, key)].attributes or {})
        assert facts["aaiclick.task.name"] == task.name
        assert facts.get("error.type") == (None if task is good else "builtins.ValueError")
    assert "canary-argument" not in repr([span.to_json() for span in found.values()])


async def test_a_run_of_the_catalogue_begins_a_trace_too(local: object, exported: InMemorySpanExporter) -> None:
    await register_job("nightly", secretive.length, default_kwargs={"secret": "no secret"})
    job = await run_job("nightly")
    (span,) = exported.get_finished_spans()
    assert span.context is not None
    assert (span.name, span.context.trace_id) == ("submit", trace_id_of(job.id))


def test_a_body_that_was_stopped_and_a_late_report(exported: InMemorySpanExporter) -> None:
    spans = run_spans.run_spans()
    assert spans is not None
    stopped, late = claim_of(bodies.nothing), claim_of(bodies.nothing)
    spans.began(stopped)
    spans.ended(stopped, None)
    spans.ended(late, Done(late.task_id, late.epoch))
    spans.reported([Done(late.task_id, late.epoch), Done(1, 1)], set())
    kinds = [(span.name, (span.attributes or {}).get("error.type")) for span in exported.get_finished_spans()]
    assert kinds == [("run", "stopped"), ("run", None), ("report", "late")]


def test_reports_that_never_arrive_are_forgotten(
    exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_spans, "UNREPORTED_MAX", 2)
    spans = run_spans.run_spans()
    assert isinstance(spans, RunSpans)
    for claim in [claim_of(bodies.nothing) for _ in range(5)]:
        spans.ended(claim, Done(claim.task_id, claim.epoch))
    assert len(spans._ended) <= 2


def test_nobody_pays_for_what_is_off() -> None:
    reset_settings()
    assert run_spans.run_spans() is None
