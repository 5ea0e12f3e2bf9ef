"""A graph that travels is stored as the one that was sent."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Group, Job, Task
from aaiclick.orchestration.models.children import stored_node
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.sent_submission import SentSubmission
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.triggers import When
from aaiclick.orchestration.store.graphs import new_rows

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PLAN: Any = SimpleNamespace(
    task_unmet=defaultdict(int),
    group_unmet=defaultdict(int),
    group_open=defaultdict(int),
    group_depth=defaultdict(int),
    dependents=defaultdict(int),
    gated=set(),
    awaited={},
    amiss=set(),
    met=set(),
)

names = st.text("abc é🦆", min_size=1, max_size=5).map(lambda text: f"n{text}n")
rules = st.sampled_from(list(When))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab🦆"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("xy"), inner, max_size=2),
    max_leaves=4,
)
retries = {"max_retries": st.integers(0, 9), "delay_s": st.floats(0.5, 9), "jitter": st.booleans()}
policies = st.none() | st.builds(RetryPolicy, **retries)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    job = new_job(
        draw(names),
        key=draw(st.none() | st.just("key")),
        priority=draw(st.integers(-9, 9)),
        timeout_s=draw(st.none() | st.floats(1, 9)),
        fail_fast=draw(st.booleans()),
        reserved_for=draw(st.sampled_from([0, 77])),
    )
    job.key_digest = draw(st.none() | st.just("digest"))
    job.arguments = draw(st.none() | st.dictionaries(st.text("xy"), st.text("ab🦆"), max_size=2))
    job.result_json = draw(st.none() | st.just('{"object_type":"pyobj","value":1}'))
    job.scheduled_at = draw(st.none() | st.just(NOW))
    job.registered_job_id, job.backfill_id = draw(st.none() | st.just(5)), draw(st.none() | st.just(6))
    return job


@st.composite
def submissions(draw: st.DrawFn) -> Submission:
    groups = [Group(draw(names), when=draw(rules)) for _ in range(draw(st.integers(0, 3)))]
    for inner, outer in zip(groups[1:], groups, strict=False):
        if draw(st.booleans()):
            inner.parent_group_id = outer.id
    nodes: list[Node] = [*groups]
    for _ in range(draw(st.integers(0, 5))):
        upstream: list[Any] = draw(st.lists(st.sampled_from(nodes), max_size=2)) if nodes else []
        task = Task(
            "some.module.f",
            {"given": draw(values), "upstream": upstream},
            name=draw(names),
            retry=draw(policies),
            timeout_s=draw(st.none() | st.floats(1, 9)),
            priority=draw(st.integers(-9, 9)),
            critical=draw(st.booleans()),
            stop_when_cut_off=draw(st.booleans()),
            when=draw(rules),
        )
        if groups and not upstream and draw(st.booleans()):
            task.group_id = draw(st.sampled_from(groups)).id
        if draw(st.booleans()):
            number = draw(st.integers(1, 99))
            task.depends_on(stored_node(("task", "group")[number % 2], number, f"stored {number}"))
        nodes.append(task)
    tasks = [node for node in nodes if isinstance(node, Task)]
    if groups and tasks and draw(st.booleans()):
        groups[0].output = draw(st.sampled_from(tasks))
    job = draw(st.none() | jobs())
    made = gather(9 if job is None else job.id, nodes)
    made.new_job, made.whole = job, draw(st.booleans())
    return made


def stored(submission: Submission) -> list[object]:
    """All that the database is given of it, but what is counted."""
    job = submission.new_job
    return [
        submission.job_id,
        submission.whole,
        None if job is None else {name: getattr(job, name) for name in Job.__slots__},
        [new_rows.task_row(task, PLAN, 9, NOW) for task in submission.tasks],
        [new_rows.group_row(group, PLAN, 9, NOW) for group in submission.groups],
        new_rows.edge_rows(submission, PLAN),
        [(str(edge.previous), str(edge.next)) for edge in submission.edges],
        [node.applied for node in (*submission.tasks, *submission.groups)],
    ]


@given(submissions())
def test_what_arrives_is_stored_as_what_was_sent(submission: Submission) -> None:
    sent = SentSubmission.of(submission)
    there = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=SentSubmission)
    assert there == sent
    assert stored(there.submission()) == stored(submission)
    assert SentSubmission.of(there.submission()) == sent


@given(submissions())
def test_json_carries_it_as_well(submission: Submission) -> None:
    sent = SentSubmission.of(submission)
    assert msgspec.json.decode(msgspec.json.encode(sent), type=SentSubmission) == sent


def test_the_names_of_what_is_stored_travel_for_what_is_said_of_it() -> None:
    new = Task("some.module.f", name="new")
    new.depends_on(stored_node("task", 5, "old"))
    (edge,) = SentSubmission.of(gather(9, [new])).submission().edges
    assert (str(edge.previous), str(edge.next)) == ("task 'old'", "task 'new'")
