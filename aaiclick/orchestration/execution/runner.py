"""One run: from a claim to its report."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from aaiclick.config import settings
from aaiclick.data.context import provided_by
from aaiclick.errors import TaskTimeout, ValueNotPortable
from aaiclick.orchestration.execution.failures import failure_of
from aaiclick.orchestration.execution.run_data import PLAIN, Opened, RunData, key_of, refers_to_objects, wanting_objects
from aaiclick.orchestration.models import Claim, Done, Group, Report, Task
from aaiclick.orchestration.params import check_call, resolve, unwrap
from aaiclick.orchestration.rules.names import shorten
from aaiclick.orchestration.rules.values import decode_kwargs, encode_value, reference_in
from aaiclick.orchestration.views import TaskResult, decode_result


class _Raised(Exception):
    """What a body raised on its thread: some kinds cannot be raised again in a coroutine, or would end the loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Watcher(Protocol):
    """Who wants to meet an exception before it becomes a report."""

    def __call__(self, claim: Claim, error: BaseException, /) -> None: ...


async def run_claim(
    claim: Claim, *, threads: bool = True, watcher: Watcher | None = None, interruptible: bool = True
) -> Report:
    """Run the body of a claimed task here and say what it came to.

    A plain function runs on a thread, so that others go on; with `threads=False` it runs where this runs, which is
    what a debugger wants. Whatever a body raises becomes a failure, except the interrupt of whoever watches it
    (`interruptible=False`: nobody does).
    """
    data = RunData(claim)
    try:
        return await _run_claim(claim, data, threads, watcher, interruptible)
    finally:
        if data.is_open:
            await data.end()


async def _run_claim(
    claim: Claim, data: RunData, threads: bool, watcher: Watcher | None, interruptible: bool
) -> Report:
    try:
        opened = await data.open_arguments() if refers_to_objects(claim) else {}
    except Exception as error:
        return _failed(claim, error, watcher)
    try:
        function, kwargs = prepare(claim, opened)
    except Exception as error:
        return failure_of(claim, error, permanent=True)
    except KeyboardInterrupt as error:
        if interruptible:
            raise
        return failure_of(claim, error, permanent=True)
    try:
        value = await _value(claim, data, function, kwargs, threads)
    except _Raised as raised:
        return _failed(claim, raised.error, watcher)
    except KeyboardInterrupt as error:
        if interruptible:
            raise
        return _failed(claim, error, watcher)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return _failed(claim, error, watcher)
    except BaseException as error:
        return _failed(claim, error, watcher)
    return completed(claim, value)


async def _value(
    claim: Claim, data: RunData, function: Callable[..., Any], kwargs: dict[str, Any], threads: bool
) -> object:
    """What the body returns; tables are made of what it returns of queries."""
    if wanting_objects(function):
        kwargs = await data.convert(function, kwargs)
    with provided_by(data.context):
        value = await _call(function, kwargs, timeout_of(claim), threads)
        return value if type(value) in PLAIN else await data.lower(value)


def timeout_of(claim: Claim) -> float | None:
    """Seconds that the run may take; None for any number."""
    return settings().task_timeout_s if claim.timeout_s is None else claim.timeout_s


def _failed(claim: Claim, error: BaseException, watcher: Watcher | None) -> Report:
    if watcher is not None:
        watcher(claim, error)
    return failure_of(claim, error)


def completed(claim: Claim, value: object) -> Report:
    """The report of a body that returned this.

    A result that cannot travel fails the task at once: it would fail again (pitfall T21).
    """
    if isinstance(value, TaskResult) and not value.tasks:
        value = value.data
    try:
        text = encode_value(value, path="result", bytes_max=settings().value_bytes_max, mark=_marker(claim))
    except Exception as error:  # encoding meets objects of the user's: they may raise anything
        return failure_of(claim, error, permanent=True)
    return Done(claim.task_id, claim.epoch, text)


def _marker(claim: Claim) -> Callable[[object], tuple[str, object] | None]:
    """Objects and Views are marked by where they are, with the job that made them; tasks cannot be handed on."""

    def mark(value: object) -> tuple[str, object] | None:
        _refuse_tasks(value)
        found = reference_in(value)
        return None if found is None else (found[0], {**found[1], "job_id": claim.job_id})

    return mark


def _refuse_tasks(value: object) -> None:
    if isinstance(value, Task | Group | TaskResult):
        rule = "tasks that are made while a task runs are not run"
        hint = "Make them in the workflow (@job), and return plain data."
        raise ValueNotPortable(path="result", value=shorten(value), rule=rule, hint=hint)


def prepare(claim: Claim, opened: Opened) -> tuple[Callable[..., Any], dict[str, object]]:
    """The function to call and its arguments; the user's module is imported."""
    function = unwrap(resolve(claim.entrypoint))
    kwargs = decode_kwargs(claim.kwargs_json, _resolver(claim.inputs, claim.members, opened))
    check_call(function, kwargs, claim.entrypoint)
    return function, kwargs


def _resolver(
    inputs: Mapping[int, str | None], members: Mapping[int, list[int]], opened: Opened
) -> Callable[[str, Any], object]:
    def open_found(kind: str, payload: Any) -> object:
        return opened[key_of(kind, payload)]

    def look_up(kind: str, payload: Any) -> object:
        if kind == "task":
            return decode_result(inputs[payload], inputs, members, open_found)
        if kind == "group":
            return [decode_result(inputs[task], inputs, members, open_found) for task in members[payload]]
        return open_found(kind, payload)

    return look_up


async def _call(
    function: Callable[..., Any], kwargs: dict[str, object], timeout_s: float | None, threads: bool
) -> object:
    if timeout_s is None:
        return await _returned(function, kwargs, threads)
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            return await _returned(function, kwargs, threads)
    except TimeoutError:
        if limit.expired():
            raise TaskTimeout(timeout_s=timeout_s) from None
        raise


async def _returned(function: Callable[..., Any], kwargs: dict[str, object], threads: bool) -> object:
    if inspect.iscoroutinefunction(function) or not threads:
        returned = function(**kwargs)
    else:
        returned = await _on_thread(function, kwargs)
    return await returned if inspect.isawaitable(returned) else returned


async def _on_thread(function: Callable[..., Any], kwargs: dict[str, object]) -> object:
    """Run on a thread of its own: a body that hangs holds up neither the others nor the end of this process."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    surroundings = contextvars.copy_context()
    returned: list[object] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            returned.append(surroundings.run(function, **kwargs))
        except BaseException as error:
            raised.append(error)
        with suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=work, name=f"aaiclick-{function.__name__}", daemon=True).start()
    await ended.wait()
    if raised:
        raise _Raised(raised[0])
    return returned[0]
