"""One run: from a claim to its report."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from aaiclick.data.context import provided_by
from aaiclick.errors import TaskTimeout
from aaiclick.orchestration.execution.current import RUNNING
from aaiclick.orchestration.execution.failures import failure_of
from aaiclick.orchestration.execution.narrowing import narrowed
from aaiclick.orchestration.execution.run_data import (
    PLAIN,
    Opened,
    RunData,
    is_heavy,
    key_of,
    refers_to_objects,
    wanting_objects,
)
from aaiclick.orchestration.execution.secrets import hands_on_secrets, mask_values, may_name_secrets, reveal
from aaiclick.orchestration.execution.staging import completed, new_staging
from aaiclick.orchestration.execution.timeouts import timeout_of
from aaiclick.orchestration.gathering import staged_in
from aaiclick.orchestration.models import Claim, Report
from aaiclick.orchestration.params import check_call, resolve, unwrap
from aaiclick.orchestration.rules.entrypoints import arguments_from_outside, has_outside_arguments
from aaiclick.orchestration.rules.values import decode_kwargs
from aaiclick.orchestration.views import Results


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
    claim = narrowed(claim)
    data = RunData(claim)
    try:
        with arguments_from_outside(has_outside_arguments(claim.entrypoint)):
            report = await _run_claim(claim, data, threads, watcher, interruptible)
    finally:
        if data.is_open:
            await data.end()
    return data.sign(report)


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
    staging = new_staging(claim)
    try:
        with staged_in(staging):
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
    report = completed(claim, value, staging)
    try:
        return data.hand_on(await data.lighten(report) if is_heavy(report) else report)
    except Exception as error:  # ClickHouse may be away
        return _failed(claim, error, watcher)


async def _value(
    claim: Claim, data: RunData, function: Callable[..., Any], kwargs: dict[str, Any], threads: bool
) -> object:
    """What the body returns; tables are made of what it returns of queries."""
    if wanting_objects(function):
        kwargs = await data.convert(function, kwargs)
    with provided_by(data.context):
        value = await _call(function, kwargs, timeout_of(claim), threads)
        return value if type(value) in PLAIN else await data.lower(value)


def _failed(claim: Claim, error: BaseException, watcher: Watcher | None) -> Report:
    if watcher is not None:
        watcher(claim, error)
    return failure_of(claim, error)


def prepare(claim: Claim, opened: Opened) -> tuple[Callable[..., Any], dict[str, object]]:
    """The function to call and its arguments; the user's module is imported. Secrets become their values."""
    with_secrets = may_name_secrets(claim)
    if with_secrets:
        mask_values(_arguments(claim, opened, importing=False))
    found = resolve(claim.entrypoint)  # first: what it imports may be where the types of its arguments are
    kwargs = _arguments(claim, opened)
    function = unwrap(found)
    check_call(function, kwargs, claim.entrypoint)
    if with_secrets and not hands_on_secrets(found):
        kwargs = reveal(kwargs)
    return function, kwargs


def _arguments(claim: Claim, opened: Opened, *, importing: bool = True) -> dict[str, object]:
    results: Results | None = None

    def resolve(kind: str, payload: Any) -> Any:
        nonlocal results
        results = results or Results(
            claim.inputs,
            claim.members,
            claim.outputs,
            lambda kind, payload: opened[key_of(kind, payload)],
            importing=importing,
        )
        return results.resolve(kind, payload)

    return decode_kwargs(claim.kwargs_json, resolve, importing=importing)


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

    thread = threading.Thread(target=work, name=f"aaiclick-{function.__name__}", daemon=True)
    running = RUNNING.get()
    if running is not None:
        running.thread = thread
    thread.start()
    await ended.wait()
    if raised:
        raise _Raised(raised[0])
    return returned[0]
