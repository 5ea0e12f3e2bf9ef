"""The executors that can be used here: those of aaiclick, and plug-ins of the entry-point group `aaiclick.executors`.

An executor is one importable function, plain or async: its parameters are the options of a task, and what it returns
is the task's result. Everything else is done for it as for any body: time limits, logs, retries, stopping, Secrets.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from aaiclick.config import settings
from aaiclick.errors import EntrypointError
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, SIGN, executor_of, function_in
from aaiclick.urls import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "aaiclick.executors"
OURS = {"shell": ("aaiclick.executors.shell_command", "run"), "rest": ("aaiclick.executors.rest_call", "run")}
"""Module and function of our own executors, which plug-ins cannot replace."""

Body = Callable[..., Any]


def executor_types() -> tuple[str, ...]:
    """Return the names of the executors that a worker with these settings offers, `python` first."""
    chosen = settings().executors
    there = (PYTHON, *sorted({*OURS, *_plug_ins()}))
    return tuple(name for name in there if not chosen or name in chosen)


def check_offered(executor: str, entrypoint: str) -> None:
    """Raise EntrypointError if AAICLICK_EXECUTORS leaves this executor out."""
    chosen = settings().executors
    if chosen and executor not in chosen:
        cause = f"this worker offers only these executors: {', '.join(chosen)}"
        raise EntrypointError(entrypoint=entrypoint, cause=cause, hint="They are set by AAICLICK_EXECUTORS.")


def executor_in(thing: object) -> str:
    """Return the executor that a `@task` was given; `python` for everything else."""
    return str(getattr(thing, "executor", PYTHON)) if getattr(thing, "__aaiclick__", None) == "task" else PYTHON


def body_alone(entrypoint: object) -> Body | None:
    """Return the function of an executor, if the entrypoint names no function besides it; else None."""
    if type(entrypoint) is not str or SIGN not in entrypoint or function_in(entrypoint):
        return None
    return body_of(executor_of(entrypoint))


def body_of(executor: str) -> Body:
    """Return the function of an executor; raise EntrypointError if there is none of that name, or it is unusable."""
    name = f"{executor}{SIGN}"
    if executor in OURS:
        module, function = OURS[executor]
        return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]
    plug_in = _plug_ins().get(executor)
    if plug_in is None:
        known = executor_types()
        hint = did_you_mean(executor, list(known)) or f"There are {', '.join(known)}."
        cause = "no executor of that name is installed"
        raise EntrypointError(entrypoint=name, cause=cause, hint=hint) from ModuleNotFoundError(executor)
    try:
        body = plug_in.load()
    except Exception as error:  # a module of others may raise anything
        cause = f"loading {plug_in.value} raised {type(error).__name__}: {error}"
        raise EntrypointError(entrypoint=name, cause=cause, hint=f"Mend or remove {_source(plug_in)}.") from error
    if not isinstance(body, types.FunctionType):
        cause = f"{plug_in.value} is a {type(body).__name__}, and an executor is a function"
        raise EntrypointError(entrypoint=name, cause=cause, hint=f"Mend or remove {_source(plug_in)}.")
    return body


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    """Return the plug-ins by name: looked up once in a process, since it reads the metadata of all that is installed.

    Of two of the same name, the first on the path counts, as for modules.
    """
    from importlib.metadata import entry_points  # rarely needed, and takes long to import

    found: dict[str, EntryPoint] = {}
    for each in entry_points(group=GROUP):
        if each.name not in (PYTHON, *OURS):
            found.setdefault(each.name, each)
    return found


def _source(plug_in: EntryPoint) -> str:
    return "its distribution" if plug_in.dist is None else plug_in.dist.name
