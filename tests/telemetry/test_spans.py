"""Spans with ids of our own, that carry nothing but names and ids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aaiclick.telemetry import masks
from aaiclick.telemetry.spans import Spans
from aaiclick.telemetry.traces import RunKey, Step, span_id_of, trace_id_of

RUN = RunKey(2**60, 7, 2)


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    masks.forget_all()
    yield
    masks.forget_all()


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exported: InMemorySpanExporter) -> Spans:
    return Spans(SimpleSpanProcessor(exported))


def only(exported: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exported.get_finished_spans()
    return span


def test_each_step_is_part_of_the_one_before(spans: Spans, exported: InMemorySpanExporter) -> None:
    for number, step in enumerate(Step):
        spans.add(step, RUN, 1000 + number, 2000 + number, {"job.id": RUN.job_id, "epoch": 2})
    found = exported.get_finished_spans()
    assert [span.name for span in found] == ["submit", "claim", "run", "report"]
    assert {span.context.trace_id for span in found if span.context} == {trace_id_of(RUN.job_id)}
    assert [span.context.span_id for span in found if span.context] == [span_id_of(step, RUN) for step in Step]
    assert [span.parent and span.parent.span_id for span in found] == [
        None,
        *(span_id_of(step, RUN) for step in (Step.SUBMIT, Step.CLAIM, Step.RUN)),
    ]
    assert (found[1].start_time, found[1].end_time) == (1001, 2001)
    assert dict(found[1].attributes or {}) == {"aaiclick.job.id": str(2**60), "aaiclick.epoch": 2}
    assert found[0].resource.attributes["service.name"] == "aaiclick"


def test_an_error_is_told_by_its_kind(spans: Spans, exported: InMemorySpanExporter) -> None:
    spans.add(Step.RUN, RUN, 1, 2, {}, error="builtins.ValueError")
    assert not only(exported).status.is_ok
    assert dict(only(exported).attributes or {}) == {"error.type": "builtins.ValueError"}
    assert only(exported).events == ()


def test_names_are_masked(spans: Spans, exported: InMemorySpanExporter) -> None:
    masks.remember(["canary-in-a-name"])
    spans.add(Step.RUN, RUN, 1, 2, {"task.name": "load canary-in-a-name"})
    assert dict(only(exported).attributes or {}) == {"aaiclick.task.name": "load ***"}


def test_what_a_body_makes_belongs_to_its_run(spans: Spans, exported: InMemorySpanExporter) -> None:
    theirs = TracerProvider()
    theirs.add_span_processor(SimpleSpanProcessor(exported))
    with spans.inside(RUN), theirs.get_tracer("theirs").start_as_current_span("query"):
        pass
    assert not trace.get_current_span().get_span_context().is_valid
    span = only(exported)
    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id) == (trace_id_of(RUN.job_id), span_id_of(Step.RUN, RUN))


def test_whoever_submits_inside_another_trace_is_linked_to_it(spans: Spans, exported: InMemorySpanExporter) -> None:
    with TracerProvider().get_tracer("theirs").start_as_current_span("request") as around:
        spans.add(Step.SUBMIT, RUN, 1, 2, {})
    (link,) = only(exported).links
    assert link.context == around.get_span_context()
    assert only(exported).parent is None


def test_a_trace_is_sampled_as_a_whole(monkeypatch: pytest.MonkeyPatch, exported: InMemorySpanExporter) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    spans = Spans(SimpleSpanProcessor(exported))
    for job_id in range(100):
        for step in Step:
            spans.add(step, RunKey(job_id, job_id, 1), 1, 2, {})
    counts = [0] * 100
    for span in exported.get_finished_spans():
        assert span.context is not None
        counts[next(job for job in range(100) if trace_id_of(job) == span.context.trace_id)] += 1
    assert set(counts) == {0, 4}


def test_the_name_of_the_service_may_be_given(monkeypatch: pytest.MonkeyPatch, exported: InMemorySpanExporter) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "theirs")
    Spans(SimpleSpanProcessor(exported)).add(Step.SUBMIT, RUN, 1, 2, {})
    assert only(exported).resource.attributes["service.name"] == "theirs"
