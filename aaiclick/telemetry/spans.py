"""OpenTelemetry spans whose ids are derived from those of jobs and runs (`telemetry/traces`).

Spans contain ids, names and types of errors; never arguments or messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from aaiclick import __version__
from aaiclick.telemetry.masks import mask_text
from aaiclick.telemetry.traces import RunKey, Step, span_id_of, trace_id_of

Attributes = Mapping[str, str | int]

_PART_OF = {Step.CLAIM: Step.SUBMIT, Step.RUN: Step.CLAIM, Step.REPORT: Step.RUN}
_KINDS = {Step.SUBMIT: SpanKind.PRODUCER, Step.CLAIM: SpanKind.CONSUMER}

_wanted: ContextVar[tuple[int, int] | None] = ContextVar("wanted", default=None)
"""The trace id and span id that the next span is given; None for random ones."""


class _Ids(RandomIdGenerator):
    """Generates the ids in `_wanted`, else random ones."""

    def generate_trace_id(self) -> int:
        wanted = _wanted.get()
        return super().generate_trace_id() if wanted is None else wanted[0]

    def generate_span_id(self) -> int:
        wanted = _wanted.get()
        return super().generate_span_id() if wanted is None else wanted[1]


class Spans:
    """Makes the spans of this process, with a provider of its own: the global one, which users may set, is not touched.

    The exporter starts with the first span. A process that only uses `inside`, such as a child, starts none.
    """

    def __init__(self, processor: SpanProcessor | None = None) -> None:
        self._provider = TracerProvider(id_generator=_Ids(), resource=_resource())
        self._tracer = self._provider.get_tracer("aaiclick", __version__)
        self._processor = processor
        self._exports = False

    def add(
        self, step: Step, run: RunKey, began_ns: int, ended_ns: int, attributes: Attributes, *, error: str = ""
    ) -> None:
        """Add the span of a finished step of a run. `error` is the type of the error it ended with, or empty.

        Times are nanoseconds since the Unix epoch.
        """
        self._export()
        links = []
        if step is Step.SUBMIT and (around := trace.get_current_span().get_span_context()).is_valid:
            links.append(Link(around))  # the submitting code may have a trace of its own
        token = _wanted.set((trace_id_of(run.job_id), span_id_of(step, run)))
        try:
            span = self._tracer.start_span(
                str(step),
                context=self._parent(step, run),
                kind=_KINDS.get(step, SpanKind.INTERNAL),
                attributes={f"aaiclick.{name}": _plain(value) for name, value in attributes.items()},
                links=links,
                start_time=began_ns,
            )
        finally:
            _wanted.reset(token)
        if error:
            span.set_attribute("error.type", error)
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_time=ended_ns)

    @contextmanager
    def inside(self, run: RunKey) -> Iterator[None]:
        """Make the run's span the parent of all spans that are started inside, by any provider."""
        token = contexts.attach(self._in(Step.RUN, run))
        try:
            yield
        finally:
            contexts.detach(token)

    def flush(self) -> None:
        """Export the pending spans."""
        self._provider.force_flush()

    def _parent(self, step: Step, run: RunKey) -> Context:
        return Context() if step is Step.SUBMIT else self._in(_PART_OF[step], run)

    def _in(self, step: Step, run: RunKey) -> Context:
        """Return a context in which this step is the current span. The sampler decides by the id of the trace."""
        trace_id = trace_id_of(run.job_id)
        decision = self._provider.sampler.should_sample(None, trace_id, str(step)).decision
        flags = TraceFlags(TraceFlags.SAMPLED if decision is Decision.RECORD_AND_SAMPLE else TraceFlags.DEFAULT)
        known = SpanContext(trace_id, span_id_of(step, run), is_remote=True, trace_flags=flags)
        return trace.set_span_in_context(NonRecordingSpan(known), Context())

    def _export(self) -> None:
        if not self._exports:
            self._exports = True
            self._provider.add_span_processor(self._processor or BatchSpanProcessor(OTLPSpanExporter()))


def _plain(value: str | int) -> str | int:
    """Return text masked, and large integers as text: ids exceed the safe range of JSON numbers."""
    return mask_text(value) if isinstance(value, str) else value if abs(value) < 2**53 else str(value)


def _resource() -> Resource:
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create() if named else Resource.create({SERVICE_NAME: "aaiclick"})
