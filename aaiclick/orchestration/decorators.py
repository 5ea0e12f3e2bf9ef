"""The decorators `@task` and `@job`, and the factories that they make of functions."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, Unpack, overload

from aaiclick.config import settings
from aaiclick.errors import EntrypointError, GraphError, InputError, RunningLoop
from aaiclick.orchestration.blocking import in_running_loop
from aaiclick.orchestration.checks import refuse_during_import
from aaiclick.orchestration.connections import front_door
from aaiclick.orchestration.factories import digest, new_job, submit_job
from aaiclick.orchestration.gathering import staging_around
from aaiclick.orchestration.models import Job, PreservationMode, Task
from aaiclick.orchestration.models.node import Node, collector, current_group
from aaiclick.orchestration.results.task_results import TaskResult, encode_returned
from aaiclick.orchestration.rules.cache_policies import CacheMode, CacheOption, Key, Remembering, cache_of
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, check_executor
from aaiclick.orchestration.rules.options import JobOptions, TaskOptions
from aaiclick.orchestration.rules.placement import Placement, needs_of
from aaiclick.orchestration.rules.resources import Resources
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.triggers import Trigger, When, check_when
from aaiclick.orchestration.rules.type_variables import Given, P, R
from aaiclick.orchestration.rules.validation import check_name, shorten
from aaiclick.orchestration.rules.values.encoding import encode_kwargs, reference_in
from aaiclick.orchestration.rules.values.shown_values import show_arguments
from aaiclick.orchestration.rules.values.walk import BLOB_SETTING
from aaiclick.orchestration.submitting.entrypoints import bind, entrypoint_of, kind_of
from aaiclick.orchestration.submitting.result_keys import check_keys, portable

if TYPE_CHECKING:
    from aaiclick.orchestration.models.job import AwaitableJob

Function = Callable[..., Any]
Factory = TypeVar("Factory", bound="TaskFactory | JobFactory")
Handing = Coroutine[Any, Any, TaskResult[R] | Task[R]] | TaskResult[R] | Task[R]
"""What a function may return instead of a value: a TaskResult or a Task with that value, also as a coroutine."""


@dataclass(frozen=True)
class TaskFactory(Generic[P, Given]):
    """A function marked `@task`: calling it makes a Task, which waits for the Tasks among its arguments.

    `function` is the undecorated function. For type checkers, a call returns the value that the task will have.
    """

    function: Callable[P, Any]
    name: str
    retry: RetryPolicy | None = None
    max_retries: int | None = None
    timeout_s: float | None = None
    priority: int = 0
    critical: bool = True
    stop_when_cut_off: bool = True
    when: Trigger = When.ALL_COMPLETED
    placement: Placement | None = None
    resources: Resources | None = None
    executor: str = PYTHON
    """What runs the body. With another than `python`, the function says by what it returns what that is to do."""
    cache: CacheOption = None
    idempotency_key: Key | None = None

    __aaiclick__ = "task"
    _chosen = False
    """Whether `.options(…)` gave `cache` or `idempotency_key`: then both are stored with the task."""

    def __post_init__(self) -> None:
        check_when(self.when)
        needs_of(self.placement, self.resources)
        object.__setattr__(self, "executor", check_executor(self.executor))
        check_keys(self.function, self.remembering)

    @functools.cached_property
    def remembering(self) -> Remembering:
        """The options `cache` and `idempotency_key`, checked."""
        return Remembering(cache_of(self.cache), self.idempotency_key)

    @functools.cached_property
    def entrypoint(self) -> str:
        return entrypoint_of(self)

    @property
    def chosen_keys(self) -> dict[str, Any]:
        """The options `cache` and `idempotency_key` if `.options(…)` gave one: they are stored with each task."""
        if not self._chosen:
            return {}
        options = portable(self.remembering)
        return {"cache": options.cache or False, "idempotency_key": options.idempotency_key}

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Given:
        made: Any = Task(
            self.entrypoint,
            bind(self.function, args, kwargs),
            name=self.name,
            max_retries=self.max_retries,
            retry=self.retry,
            timeout_s=self.timeout_s,
            priority=self.priority,
            critical=self.critical,
            stop_when_cut_off=self.stop_when_cut_off,
            when=self.when,
            placement=self.placement,
            resources=self.resources,
            references=False,
            chosen=True,
            **self.chosen_keys,
        )
        stands_for: Given = made  # for type checkers: a task may be passed where its value is expected; see as_task
        return stands_for

    def options(self, **changes: Unpack[TaskOptions]) -> TaskFactory[P, Given]:
        """Return a copy of this factory with other options: `add.options(priority=5)(a=1, b=2)`."""
        made = _named(replace(self, **changes))
        object.__setattr__(made, "_chosen", self._chosen or not changes.keys().isdisjoint(("cache", "idempotency_key")))
        return made


@overload
def as_task(value: Task[R]) -> Task[R]: ...
@overload
def as_task(value: R) -> Task[R]: ...
def as_task(value: Any) -> Task[Any]:
    """Return the same object, typed as a Task for type checkers: `as_task(save(x)) >> as_task(report())`."""
    if not isinstance(value, Task):
        hint = "Pass the result of calling a function marked @task."
        raise InputError(field="as_task", value=shorten(value), rule="it must be a Task", hint=hint)
    return value


class Submitting(Awaitable[Job]):
    """The result of calling a workflow inside a running event loop: awaiting it submits the job and returns it.

    Any other use raises RunningLoop, because the job does not exist yet.
    """

    def __init__(self, label: str, submission: Coroutine[Any, Any, Job]) -> None:
        self._label, self._submission = label, submission

    def __await__(self) -> Generator[Any, Any, Job]:
        return self._submission.__await__()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            self._submission.close()  # avoids a warning that the coroutine was never awaited
            raise RunningLoop(call=f"{self._label}(…).{name}", instead=f"(await {self._label}(…)).{name}")
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"<{self._label}(…), to be awaited>"


@dataclass(frozen=True)
class JobFactory(Generic[P, Given]):
    """A workflow function marked `@job`: calling it builds its graph and commits it as a new Job.

    Inside a running event loop the call must be awaited: `await pipeline(x=3)`.
    """

    function: Callable[P, Any]
    name: str
    key: str | None = None
    priority: int = 0
    preservation_mode: PreservationMode | str | None = None
    timeout_s: float | None = None
    fail_fast: bool = False
    placement: Placement | None = None
    resources: Resources | None = None
    cache_mode: CacheMode | str = CacheMode.USE

    __aaiclick__ = "job"

    def __post_init__(self) -> None:
        needs_of(self.placement, self.resources)

    @functools.cached_property
    def entrypoint(self) -> str:
        return entrypoint_of(self.function)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> AwaitableJob[Given]:
        label = _label(self.function)
        refuse_during_import(f"{label}(…)")
        _refuse_nesting(label)
        submission = self.submit(*args, **kwargs)
        made: Any = Submitting(label, submission) if in_running_loop() else asyncio.run(submission)
        reached: AwaitableJob[Given] = made
        return reached

    async def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> Job[Given]:
        """Build the graph and commit it as a new job."""
        given = bind(self.function, args, kwargs)
        async with front_door():  # before the first id is made, so that ids come from those granted to this process
            job, nodes = await self.build(given)
            return await submit_job(job, nodes, whole=True)

    def options(self, **changes: Unpack[JobOptions]) -> JobFactory[P, Given]:
        """Return a copy of this factory with other options: `pipeline.options(key="2026-11-15", priority=5)(x=3)`."""
        return _named(replace(self, **changes))

    async def build(self, kwargs: dict[str, object], *, reserved_for: int = 0) -> tuple[Job, list[Node]]:
        """Call the function and return the new job and its nodes; nothing is stored."""
        job = new_job(
            self.name,
            key=self.key,
            priority=self.priority,
            preservation_mode=self.preservation_mode,
            timeout_s=self.timeout_s,
            fail_fast=self.fail_fast,
            cache_mode=self.cache_mode,
            reserved_for=reserved_for,
            placement=self.placement,
            resources=self.resources,
        )
        nodes, returned = await self._gather(kwargs)
        job.result_json, named = encode_returned(returned)
        job.arguments = show_arguments(kwargs)
        if self.key is not None:
            given = dict(sorted(kwargs.items()))
            most = settings().blob_bytes_max
            asked = encode_kwargs(given, bytes_max=most, mark=reference_in, setting=BLOB_SETTING)
            job.key_digest = digest([self.name, self.entrypoint, asked])
        return job, [*nodes, *named]

    async def _gather(self, kwargs: dict[str, object]) -> tuple[list[Node], object]:
        gathered: list[Node] = []
        around, group = collector.set(gathered), current_group.set(None)
        try:
            function: Function = self.function
            returned = function(**kwargs)
            if inspect.isawaitable(returned):
                returned = await returned
        finally:
            collector.reset(around)
            current_group.reset(group)
        return gathered, returned


class TaskMark(Protocol):
    """The type of `task(…)` called with options: a decorator."""

    @overload
    def __call__(self, function: Callable[P, Handing[R]], /) -> TaskFactory[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> TaskFactory[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> TaskFactory[P, R]: ...


@overload
def task(function: Callable[P, Handing[R]], /) -> TaskFactory[P, R]: ...
@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> TaskFactory[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> TaskFactory[P, R]: ...
@overload
def task(function: str | None = None, /, **options: Unpack[TaskOptions]) -> TaskMark: ...
def task(function: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Mark a function as a task: `@task`, `@task("name")` or `@task(name=…, max_retries=…)`."""
    if callable(function):
        return _task(function, None, options)
    return lambda marked: _task(marked, name or function, options)


def _task(function: Function, name: str | None, options: dict[str, Any]) -> TaskFactory:
    _refuse_marked(function, "task")
    label = check_name(name or _label(function), "Task name")
    return _named(TaskFactory(function, label, **options))


class JobMark(Protocol):
    """The type of `job(…)` called with options: a decorator."""

    @overload
    def __call__(self, function: Callable[P, Handing[R]], /) -> JobFactory[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> JobFactory[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> JobFactory[P, R]: ...


@overload
def job(function: Callable[P, Handing[R]], /) -> JobFactory[P, R]: ...
@overload
def job(function: Callable[P, Coroutine[Any, Any, R]], /) -> JobFactory[P, R]: ...
@overload
def job(function: Callable[P, R], /) -> JobFactory[P, R]: ...
@overload
def job(function: str | None = None, /, **options: Unpack[JobOptions]) -> JobMark: ...
def job(function: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Mark a workflow function: `@job`, `@job("name")` or `@job(name="name")`."""
    if callable(function):
        return _job(function, None, options)
    return lambda marked: _job(marked, name or function, options)


def _job(function: Function, name: str | None, options: dict[str, Any]) -> JobFactory:
    _refuse_marked(function, "job")
    label = check_name(name or _label(function), "Job name")
    return _named(JobFactory(function, label, **options))


def _named(factory: Factory) -> Factory:
    """Copy the function's name, module and docstring to the factory."""
    function = factory.function
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        if hasattr(function, attribute):
            object.__setattr__(factory, attribute, getattr(function, attribute))
    object.__setattr__(factory, "__wrapped__", function)
    return factory


def _label(function: Function) -> str:
    """Return the function's name for display; a lambda is shown without the angle brackets."""
    return str(getattr(function, "__name__", type(function).__name__)).strip("<>")


def _refuse_marked(function: Function, decorator: str) -> None:
    if kind := kind_of(function):
        cause = f"@{decorator} was applied to a function that is already marked @{kind}"
        hint = "Mark it once; set other options for a call with .options(…)."
        raise EntrypointError(entrypoint=_label(function), cause=cause, hint=hint)


def _refuse_nesting(label: str) -> None:
    """Raise GraphError if a workflow is called inside another: it would be a second job, which tasks cannot wait for.

    In a running task a workflow may be called.
    """
    if collector.get() is not None and staging_around() is None:
        cause = f"{label}(…) was called inside another workflow, and would create a separate job"
        raise GraphError(cause=cause, hint=f"To add its tasks to this job, call {label}.function(…).")
