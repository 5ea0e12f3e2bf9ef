"""What a node sends to be stored is what a worker of ours would send."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from aaiclick.errors import AaiclickError, InputError
from aaiclick.orchestration import PlacementConstraints
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Done, Group
from aaiclick.orchestration.models.children import Children, NewEdge
from aaiclick.orchestration.models.sent_submission import SentSubmission
from aaiclick.orchestration.rules.cache_policies import Cache
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.values.encoding import encode_value
from aaiclick.server.node.sent_graphs import Needs, check_done, check_submission
from tests.support.orchestra import make

ALL = PlacementConstraints(
    requires_executors=["python"],
    requires_capabilities={"gpu": "nvidia", "memory_gb": {">=": 32}, "new": True},
    allowed_nodes=["a", "b"],
    forbidden_nodes=["c"],
    labels_all=["x"],
    labels_any=["y", "z"],
    pool="p",
    prefers="cores >= 3.5",
    spread=True,
    retry_node="other",
    near="inputs",
)


def test_every_need_that_there_is_is_known() -> None:
    assert {*ALL.to_needs(), "resources"} == set(Needs.__struct_fields__)


def sent() -> SentSubmission:
    job = new_job("job", key="k", timeout_s=5.0, priority=-1)
    group = Group("g", placement=ALL)
    more: dict[str, Any] = {"retry": RetryPolicy(3), "cache": Cache(key="{x}"), "placement": ALL, "group_id": group.id}
    first = make("a", kwargs={"x": [1, 2.5, None, (3,)]}, **more)
    second = make("b", kwargs={"of": first}, timeout_s=1.5, when="all_done")
    graph = gather(job.id, [group, first, second])
    graph.new_job = job
    return SentSubmission.of(graph)


def test_what_the_front_door_makes_is_taken() -> None:
    graph = sent()
    assert (len(graph.tasks), len(graph.groups), len(graph.edges)) == (2, 1, 1)
    check_submission(graph)
    check_submission(replace(graph, new_job=None))


VALUE = '{"x":{"object_type":"pyobj","value":1,"marks":[%s]}}'
TEXTS = ["{", "[]", "5", "null", '"x"', "[" * 5000]
TASK: list[tuple[str, Any]] = [
    *(("kwargs_json", text) for text in (*TEXTS, '{"x":5}', '{"x":{}}', '{"x":{"object_type":"pyobj"}}')),
    ("kwargs_json", '{"x":{"object_type":"object"}}'),
    *(("kwargs_json", VALUE % mark) for mark in ("5", "[1]", '[1,"x"]', '[[],"task","5"]', '[[],"object",5]')),
    *(("retry_policy", text) for text in (*TEXTS[:3], '{"max_retries":-1}', '{"more":1}')),
    *(("cache_policy", text) for text in (*TEXTS[:2], '{"cache":{"ttl":-1}}', '{"cache":{"more":1}}')),
    *(("needs", text) for text in (*TEXTS, '{"more":1}', '{"where":[["a","=",1]]}', '{"max_parallel":0}')),
    ("needs", '{"where":[["a","<",[1]]]}'),
    *(("id", number) for number in (0, -1, 2**63)),
    *(("group_id", number) for number in (0, -1, 2**63)),
    *(("priority", number) for number in (2**31, -(2**40))),
    *(("timeout_s", number) for number in (0.0, -1.0, float("nan"), float("inf"))),
    *(("name", text) for text in ("", " ", "a\x00b", "x" * 5000)),
    *(("entrypoint", text) for text in ("", "a\x00b", "\ud800", "x" * 501)),
    ("when", "sometimes"),
]


@pytest.mark.parametrize(("field", "value"), TASK, ids=repr)
def test_tasks_that_would_stop_those_who_claim_them_are_refused(field: str, value: Any) -> None:
    graph = sent()
    wrong = replace(graph, tasks=[graph.tasks[0]._replace(**{field: value}), *graph.tasks[1:]])
    with pytest.raises(AaiclickError):
        check_submission(wrong)
    children = Children(graph.job_id, wrong.tasks, [], [], [])
    with pytest.raises(AaiclickError):
        check_done(Done(1, 1, children=children))


GROUP = [("id", 0), ("parent_group_id", -1), ("output_task_id", 0), ("name", ""), ("when", ""), ("needs", "[")]


@pytest.mark.parametrize(("field", "value"), GROUP)
def test_groups_are_checked_too(field: str, value: Any) -> None:
    graph = sent()
    with pytest.raises(AaiclickError):
        check_submission(replace(graph, groups=[graph.groups[0]._replace(**{field: value})]))


EDGES = [NewEdge(0, "task", 1, "task"), NewEdge(1, "job", 2, "task"), NewEdge(1, "task", 2, "")]


@pytest.mark.parametrize("edge", EDGES)
def test_edges_are_checked_too(edge: NewEdge) -> None:
    with pytest.raises(InputError):
        check_submission(replace(sent(), edges=[edge]))


@pytest.mark.parametrize(
    "facts",
    [
        {"id": 5},
        {"name": ""},
        {"key": ""},
        {"priority": 2**31},
        {"timeout_s": -1.0},
        {"needs": "{"},
        {"result_json": "{"},
        {"arguments_json": "[]"},
        {"registered_job_id": 5},
        {"backfill_id": 5},
        {"reserved_for": 5},
    ],
)
def test_jobs_are_checked_too(facts: dict[str, Any]) -> None:
    """The graph of a new job cannot be put into that of others, nor a job into a schedule."""
    graph = sent()
    assert graph.new_job is not None
    with pytest.raises(AaiclickError):
        check_submission(replace(graph, new_job=graph.new_job._replace(**facts)))


@pytest.mark.parametrize("value", [None, 5, "x", [1, {"a": (2,)}], float("nan"), b"x"])
def test_results_that_can_be_read_are_taken(value: object) -> None:
    check_done(Done(1, 1, encode_value(value, bytes_max=10_000)))


WRONG = ["", "{", '["object"]', '{"marks":[]}', '{"object_type":"view","table":5}']


@pytest.mark.parametrize("text", WRONG)
def test_results_that_would_stop_those_who_wait_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        check_done(Done(1, 1, text))


def test_references_of_all_kinds_are_taken() -> None:
    table: dict[str, object] = {"table": "t1_1_1", "fixed": True}
    marks = [[[0], "object", table], [[1], "view", {**table, "limit": 1}], [[2], "task", 5], [[3], "group", 6]]
    many = {"object_type": "pyobj", "value": [None] * 4, "marks": marks}
    blob = {"object_type": "blob", "table": "t1_1_2", "refers": [["object", table], ["task", 5]]}
    for said in (many, blob, {"object_type": "object", **table}):
        check_done(Done(1, 1, json.dumps(said)))
    for refers in ([["object", 5]], [["task", "x"]], [["job", 5]]):
        with pytest.raises(InputError):
            check_done(Done(1, 1, json.dumps({**blob, "refers": refers})))
    with pytest.raises(InputError):
        check_done(Done(1, 1, children=Children(1, [], [], [], [("job", 5)])))
