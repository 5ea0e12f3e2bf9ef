"""Checks of what a node sends to be stored: graphs and results.

A worker of ours makes them of values that were checked where they were made. Whoever has its token may send anything,
and what cannot be read would stop whoever claims it, or waits for it, on other machines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

import msgspec

from aaiclick.errors import AaiclickError, InputError
from aaiclick.orchestration.models import Done
from aaiclick.orchestration.models.children import NewEdge, NewGroup, NewTask
from aaiclick.orchestration.models.sent_submission import NewJob, SentSubmission
from aaiclick.orchestration.rules.cache_policies import Remembering
from aaiclick.orchestration.rules.placement import PARALLEL_MAX
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.triggers import When
from aaiclick.orchestration.rules.validation import check_id, check_key, check_name, check_seconds, is_storable, shorten
from aaiclick.orchestration.rules.values.reference_marks import mentions_objects

ENTRYPOINT_LENGTH_MAX = 500
PRIORITY_MAX = 2**31 - 1
NODES = ("task", "group")
TABLES = ("object", "view", "blob")

Condition: TypeAlias = tuple[str, Literal["==", "!=", "<=", ">=", "<", ">"], str | int | float | bool | None]


class Needs(msgspec.Struct, forbid_unknown_fields=True):
    """The canonical form of a placement, as `PlacementConstraints.to_needs` makes it."""

    executors: list[str] = []
    where: list[Condition] = []
    labels_any: list[str] = []
    allowed: list[str] | None = None
    forbidden: list[str] = []
    pool: str | None = None
    max_parallel: Annotated[int, msgspec.Meta(ge=1, le=PARALLEL_MAX)] | None = None
    prefers: list[Condition] = []
    spread: bool = False
    retry_node: Literal["same", "other"] | None = None
    near: Literal["inputs"] | None = None
    patience_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0


def check_submission(graph: SentSubmission) -> None:
    """Raise InputError unless a graph is one that the front door makes."""
    check_id(graph.job_id, "job_id")
    if graph.new_job is not None:
        _check_job(graph.new_job, graph.job_id)
    _check_nodes(graph.tasks, graph.groups, graph.edges)


def check_done(report: Done) -> None:
    """Raise InputError unless the result can be read, and the tasks that the run made are ones that a run makes."""
    _try("result", report.result_json, _check_value)
    made = report.children
    if made is not None:
        _check_nodes(made.tasks, made.groups, made.edges)
        for kind, node in made.returned:
            _check_kind(kind)
            check_id(node, "returned")


def _check_job(job: NewJob, job_id: int) -> None:
    if job.id != job_id:
        _refuse("job_id", job_id, f"it is not the id of the new job, {job.id}")
    check_name(job.name, "Job name")
    if job.key is not None:
        check_key(job.key)
    own = (job.registered_job_id, job.backfill_id, job.scheduled_at, job.reserved_for or None)
    if any(each is not None for each in own):
        _refuse("new_job", job.name, "runs of schedules, and reserved ones, are made where the database is")
    _check_order(job.priority, job.timeout_s)
    _check_needs(job.needs)
    if job.result_json is not None:
        _try("result", job.result_json, _check_value)
    if job.arguments_json is not None:
        _try("arguments", job.arguments_json, lambda text: msgspec.json.decode(text, type=dict[str, Any]))


def _check_nodes(tasks: Iterable[NewTask], groups: Iterable[NewGroup], edges: Iterable[NewEdge]) -> None:
    for task in tasks:
        _check_task(task)
    for group in groups:
        _check_ids(group.id, group.parent_group_id, group.output_task_id)
        check_name(group.name, "Group name")
        _check_rules(group.when, group.needs)
    for edge in edges:
        _check_ids(edge.previous_id, edge.next_id)
        _check_kind(edge.previous_type)
        _check_kind(edge.next_type)


def _check_task(task: NewTask) -> None:
    _check_ids(task.id, task.group_id)
    check_name(task.name, "Task name")
    if not 1 <= len(task.entrypoint) <= ENTRYPOINT_LENGTH_MAX or not is_storable(task.entrypoint):
        _refuse("entrypoint", task.entrypoint, f"it must have 1 to {ENTRYPOINT_LENGTH_MAX} characters")
    _try("kwargs", task.kwargs_json, _check_kwargs)
    _check_order(task.priority, task.timeout_s)
    _try("retry_policy", task.retry_policy, RetryPolicy.from_json)
    _try("cache_policy", task.cache_policy, Remembering.from_json)
    _check_rules(task.when, task.needs)


def _check_order(priority: int, timeout_s: float | None) -> None:
    if not -PRIORITY_MAX <= priority <= PRIORITY_MAX:
        _refuse("priority", priority, "it must be a whole number of 32 bits")
    if timeout_s is not None:
        check_seconds(timeout_s, "timeout_s")


def _check_rules(when: str, needs: str) -> None:
    _try("when", when, When)
    _check_needs(needs)


def _check_needs(needs: str) -> None:
    if needs:
        _try("needs", needs, lambda text: msgspec.json.decode(text, type=Needs))


def _check_ids(*ids: int | None) -> None:
    for each in ids:
        if each is not None:
            check_id(each)


def _check_kind(kind: str) -> None:
    if kind not in NODES:
        _refuse("kind", kind, f"it must be one of {', '.join(NODES)}")


def _try(field: str, text: str | None, read: Callable[[str], object]) -> None:
    """Raise InputError if a text cannot be read."""
    if text is None:
        return
    try:
        read(text)
    except AaiclickError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        _refuse(field, text, f"it cannot be read: {shorten(str(error))}")


def _check_kwargs(text: str) -> None:
    for envelope in _object(json.loads(text)).values():
        _check_envelope(envelope)


def _check_value(text: str) -> None:
    """Raise ValueError for what is no JSON, or for references that whoever waits for the value could not read."""
    envelope = json.loads(text)
    if '"marks"' in text or mentions_objects(text):
        _check_envelope(envelope)


def _check_envelope(envelope: object) -> None:
    """Raise ValueError unless this is the stored form of a value, as far as it is read where it is not decoded."""
    said = _object(envelope)
    kind = said.get("object_type")
    if kind != "pyobj":
        _check_reference(kind, said)
        return
    if "value" not in said:
        raise ValueError("there is no value")
    for mark in said.get("marks", ()):
        path, kind, *payload = mark
        if not isinstance(path, list) or not isinstance(kind, str):
            raise ValueError("a mark has a place and a kind")
        if kind in NODES or kind in TABLES:
            _check_reference(kind, *payload)


def _check_reference(kind: object, payload: object) -> None:
    if kind in NODES:
        check_id(payload)
        return
    said = _object(payload)
    if kind not in TABLES or not isinstance(said.get("table"), str):
        raise ValueError("a reference names a table")
    for inner, its in said.get("refers", ()):
        _check_reference(inner, its)


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _refuse(field: str, value: object, rule: str) -> NoReturn:
    raise InputError(field=field, value=shorten(value), rule=rule, hint="")
