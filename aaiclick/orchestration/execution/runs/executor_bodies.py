"""Bodies of tasks with an executor: the executor's own function, or one that is told by a function of the user's."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from aaiclick.errors import InputError
from aaiclick.orchestration.execution.runs.run_secrets import mask_values, reveal
from aaiclick.orchestration.rules.naming.executor_names import function_in
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.submitting.entrypoints import bind
from aaiclick.orchestration.submitting.executors import body_of, check_offered

Body = Callable[..., Any]


def through_executor(executor: str, entrypoint: str, function: Body) -> Body:
    """Return the body of a task that names an executor. Raise EntrypointError if this worker does not offer it.

    If the entrypoint names a function too, the body calls it first, on a thread, then the executor with its result.
    """
    check_offered(executor, entrypoint)
    return _told_by(function, body_of(executor)) if function_in(entrypoint) else function


def _told_by(function: Body, body: Body) -> Body:
    @functools.wraps(function)
    async def told(**kwargs: object) -> object:
        if inspect.iscoroutinefunction(function):
            said = await function(**kwargs)
        else:
            said = await asyncio.to_thread(function, **kwargs)
        options = _options(body, said)
        mask_values(options)
        returned = body(**reveal(options))
        return await returned if inspect.isawaitable(returned) else returned

    return told


def _options(body: Body, said: object) -> dict[str, object]:
    """Return the options that a function gave: a dict of them by name, or the first of them alone."""
    if isinstance(said, Mapping):
        return bind(body, (), {str(name): value for name, value in said.items()})
    if said is None:
        rule = "the function returns what the executor is to do: a dict of its options, or the first of them"
        raise InputError(field="executor", value=shorten(said), rule=rule, hint="")
    return bind(body, (said,), {})
