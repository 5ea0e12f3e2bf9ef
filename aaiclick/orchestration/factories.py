"""Making tasks and jobs without decorators, and submitting new jobs."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from aaiclick.config import settings
from aaiclick.errors import InputError
from aaiclick.ids import new_id
from aaiclick.orchestration.checks import check_entrypoints, refuse_during_import
from aaiclick.orchestration.connections import front_door
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Group, Job, PreservationMode, RegisteredJob, RunType, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.results.task_results import encode_returned
from aaiclick.orchestration.rules.cache_policies import CacheMode, CacheOption, Key, Remembering, cache_of
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, check_executor, with_executor
from aaiclick.orchestration.rules.placement import Placement, needs_of
from aaiclick.orchestration.rules.resources import Resources
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.triggers import Trigger, When
from aaiclick.orchestration.rules.validation import check_key, check_name, check_seconds, check_status, shorten
from aaiclick.orchestration.rules.values.shown_values import show_arguments
from aaiclick.orchestration.submitting.entrypoints import path_of, unwrap
from aaiclick.orchestration.submitting.result_keys import check_keys, portable
from aaiclick.orchestration.submitting.submitted_objects import submit_given
from aaiclick.telemetry.traces import RunKey, Step, tracing

log = logging.getLogger("aaiclick")


JSON_FIELDS = frozenset(
    ("entrypoint", "executor", "kwargs", "name", "max_retries", "priority", "timeout_s", "placement", "resources")
)
"""The fields of a task in JSON."""


def create_task(
    callback: str | Callable[..., Any] | None = None,
    kwargs: Mapping[str, object] | None = None,
    *,
    executor: str | None = None,
    name: str | None = None,
    group_id: int | None = None,
    max_retries: int | None = None,
    retry: RetryPolicy | None = None,
    timeout_s: float | None = None,
    priority: int = 0,
    critical: bool = True,
    stop_when_cut_off: bool = True,
    when: Trigger = When.ALL_COMPLETED,
    placement: Placement | None = None,
    resources: Resources | None = None,
    cache: CacheOption = None,
    idempotency_key: Key | None = None,
) -> Task:
    """Make a task in memory, from an importable name (`"myapp.module.function"`) or a function.

    With an `executor`, what the function returns says what that is to do: for `shell`, a command. Without a function,
    the kwargs say it: `create_task(executor="shell", kwargs={"argv": ["ls", "-l"]})`.

    If neither `cache` nor `idempotency_key` is given, those of the function count, where it is marked `@task(…)`.
    """
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InputError(field="kwargs", value=shorten(kwargs), rule="it must be a dict of arguments by name", hint="")
    chosen = _chosen(callback, cache, idempotency_key)
    return Task(
        _entrypoint(callback, executor),
        kwargs,
        name=name,
        group_id=group_id,
        max_retries=max_retries,
        retry=retry,
        timeout_s=timeout_s,
        priority=priority,
        critical=critical,
        when=when,
        placement=placement,
        resources=resources,
        chosen=True,
        stop_when_cut_off=stop_when_cut_off,
        cache=None if chosen is None else chosen.cache or False,
        idempotency_key=None if chosen is None else chosen.idempotency_key,
    )


def _entrypoint(callback: str | Callable[..., Any] | None, executor: str | None) -> str:
    if callback is None and executor is None:
        rule = "it needs a function or its importable name, or executor=…"
        raise InputError(field="create_task", value="neither", rule=rule, hint="")
    chosen = PYTHON if executor is None else check_executor(executor)
    if callback is None:
        return path_of(with_executor(chosen, ""))
    path = path_of(callback)
    return path if executor is None else with_executor(chosen, path)


def _chosen(callback: str | Callable[..., Any] | None, cache: CacheOption, key: Key | None) -> Remembering | None:
    if cache is None and key is None:
        return None
    options = Remembering(cache_of(cache), key)
    if callable(callback):
        check_keys(unwrap(callback), options)
    return portable(options)


async def create_job(
    name: str,
    entry: Any = None,
    *,
    tasks: Sequence[Any] | None = None,
    kwargs: Mapping[str, object] | None = None,
    key: str | None = None,
    priority: int = 0,
    preservation_mode: PreservationMode | str | None = None,
    timeout_s: float | None = None,
    fail_fast: bool = False,
    placement: Placement | None = None,
    resources: Resources | None = None,
    cache_mode: CacheMode | str = CacheMode.USE,
) -> Job:
    """Create a job and commit it: with one entry (a name, a function or a Task), or with a list of tasks.

    The result of the job is that of its entry; with a list of tasks it has none.
    With `fail_fast`, the job ends when the first critical task fails for good, and its open tasks are cancelled.
    """
    nodes = _nodes(entry, tasks, kwargs)
    job = new_job(
        name,
        key=key,
        priority=priority,
        preservation_mode=preservation_mode,
        timeout_s=timeout_s,
        fail_fast=fail_fast,
        placement=placement,
        resources=resources,
        cache_mode=cache_mode,
    )
    if entry is not None:
        job.result_json, _ = encode_returned(nodes[0])
        job.arguments = None if kwargs is None else show_arguments(kwargs)
    if key is not None:
        job.key_digest = digest(_asked(name, gather(job.id, nodes)))
    return await submit_job(job, nodes)


def _nodes(
    entry: str | Task | Callable[..., Any] | None,
    tasks: Sequence[Any] | None,
    kwargs: Mapping[str, object] | None,
) -> list[Node]:
    if (entry is None) == (tasks is None):
        raise InputError(
            field="create_job", value="entry and tasks", rule="give exactly one of entry and tasks", hint=""
        )
    if tasks is not None:
        if not isinstance(tasks, list | tuple):
            raise InputError(
                field="tasks", value=shorten(tasks), rule="it must be a list", hint="Give a single task as entry."
            )
        return [_node(item) for item in tasks]
    if isinstance(entry, Task):
        if kwargs:
            raise InputError(
                field="kwargs", value="given", rule="a Task has its own arguments", hint="Pass them to create_task."
            )
        return [entry]
    assert entry is not None
    return [create_task(entry, kwargs)]


def _node(item: Task | Group | Mapping[str, Any]) -> Node:
    if isinstance(item, Task | Group):
        return item
    given = item if hasattr(item, "get") else {}
    entrypoint = given.get("entrypoint")
    if not isinstance(entrypoint, str) and (entrypoint is not None or not isinstance(given.get("executor"), str)):
        shape = '{"entrypoint": "module.function", "kwargs": {…}}'
        raise InputError(field="tasks", value=shorten(item), rule=f"each must be a Task, a Group or {shape}", hint="")
    unknown = item.keys() - JSON_FIELDS
    if unknown:
        raise InputError(field="tasks", value=sorted(unknown), rule="it has no such fields", hint="")
    options = {field: value for field, value in item.items() if field not in ("entrypoint", "kwargs")}
    return create_task(entrypoint, item.get("kwargs"), **options)


def new_job(
    name: str,
    *,
    key: str | None = None,
    priority: int = 0,
    preservation_mode: PreservationMode | str | None = None,
    timeout_s: float | None = None,
    fail_fast: bool = False,
    cache_mode: CacheMode | str = CacheMode.USE,
    reserved_for: int = 0,
    placement: Placement | None = None,
    resources: Resources | None = None,
) -> Job:
    """Make a job in memory; check its options and fill in defaults from the settings."""
    if type(priority) is not int or not -(2**31) < priority < 2**31:
        raise InputError(
            field="priority", value=shorten(priority), rule="it must be a whole number of 32 bits", hint=""
        )
    if timeout_s is not None:
        check_seconds(timeout_s, "timeout_s", "Leave it out for no limit.")
    if type(fail_fast) is not bool:
        raise InputError(field="fail_fast", value=shorten(fail_fast), rule="it must be True or False", hint="")
    return Job(
        id=new_id(),
        name=check_name(name, "Job name"),
        key=None if key is None else check_key(key),
        run_type=RunType.MANUAL,
        preservation_mode=resolve_job_config(preservation_mode),
        priority=priority,
        timeout_s=settings().job_timeout_s if timeout_s is None else timeout_s,
        reserved_for=reserved_for,
        fail_fast=fail_fast,
        needs=needs_of(placement, resources),
        cache_mode=check_status(cache_mode, CacheMode, "cache_mode"),
    )


def resolve_job_config(
    preservation_mode: PreservationMode | str | None = None, registered: RegisteredJob | None = None
) -> PreservationMode:
    """Return the argument, else the registered job's mode, else AAICLICK_DEFAULT_PRESERVATION_MODE, else NONE."""
    given = preservation_mode or (registered.preservation_mode if registered is not None else None)
    if given is None:
        return PreservationMode(str(settings().default_preservation_mode).lower())
    try:
        return PreservationMode(str(given).lower())
    except ValueError:
        raise InputError(
            field="preservation_mode", value=shorten(given), rule="it must be NONE or FULL", hint=""
        ) from None


async def submit_job(job: Job, nodes: Iterable[Node], *, whole: bool = False) -> Job:
    """Check a new job's graph and commit it. With `whole`, a job without tasks is complete at once.

    If a job with the same key exists, return that one.
    """
    refuse_during_import(f"Submitting job {job.name!r}")
    submission = gather(job.id, nodes)
    submission.new_job, submission.whole = job, whole
    for task in submission.tasks:
        task.priority = task.priority or job.priority
    check_entrypoints(submission.tasks)
    began_ns = time.time_ns()  # for the span of the submission
    async with front_door() as coordinator:
        stored = await submit_given(coordinator, submission)
    if stored.id == job.id:
        trace_submit(job, len(submission.tasks), began_ns)
        stored._tasks, stored._groups = list(submission.tasks), list(submission.groups)
    return stored


def trace_submit(job: Job, tasks: int, began_ns: int) -> None:
    """Record the submission as the first span of a job's trace, if tracing is enabled."""
    spans = tracing()
    if spans is not None:
        facts: dict[str, str | int] = {"job.id": job.id, "job.name": job.name, "job.tasks": tasks}
        spans.add(Step.SUBMIT, RunKey(job.id, 0, 0), began_ns, time.time_ns(), facts)


def _asked(name: str, submission: Submission) -> list[object]:
    """Describe a submission so that equal requests give equal values: ids, which are always new, become positions."""
    place = {node.id: position for position, node in enumerate((*submission.tasks, *submission.groups))}
    tasks = [
        (task.entrypoint, task.name, place.get(task.group_id or 0), _placed(task.kwargs, place))
        for task in submission.tasks
    ]
    groups = [(group.name, place.get(group.parent_group_id or 0)) for group in submission.groups]
    edges = sorted({(place[edge.previous.id], place[edge.next.id]) for edge in submission.edges})
    return [name, tasks, groups, edges]


def _placed(kwargs: dict[str, Any], place: Mapping[int, int]) -> dict[str, Any]:
    for envelope in kwargs.values():
        for mark in envelope.get("marks", ()):
            if mark[1] in ("task", "group"):
                mark[2] = place.get(mark[2], mark[2])
    return kwargs


def digest(body: object) -> str:
    """Return the digest of a request for a job with a key, so that the same key with another body is noticed."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()
