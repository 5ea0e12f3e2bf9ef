"""Checks before a submission: entrypoints can be imported, arguments fit, no module submits while it is imported."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aaiclick.backend import is_local
from aaiclick.errors import EntrypointError, InputError, SubmitDuringImport, ValueExposed
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.models.submission import INSTEAD
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, executor_of, with_executor
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.rules.values.annotations import converted, hints_of
from aaiclick.orchestration.submitting.entrypoints import (
    check_call,
    importing,
    kind_of,
    required_names,
    resolve,
    unwrap,
)
from aaiclick.orchestration.submitting.executors import executor_in
from aaiclick.telemetry.masks import is_mentioned

log = logging.getLogger("aaiclick")


def refuse_during_import(call: str) -> None:
    """Raise SubmitDuringImport while a module is imported to find an entrypoint: every worker would submit again."""
    if module := importing():
        raise SubmitDuringImport(call=call, module=module)


def check_entrypoints(tasks: Iterable[Task]) -> None:
    """Raise an error for tasks whose function cannot be imported here or does not take their arguments.

    Each combination of function and argument names is checked once. A module that is missing here may exist where
    workers run: that gives a warning, except in local mode. A `@job` is refused: it adds its graph only as the entry
    task of a run (`run_job`, schedules). Tasks named by a text get the executor that the function was marked with.
    """
    seen: dict[tuple[str, frozenset[str]], str] = {}
    for task in tasks:
        asked = task.entrypoint, frozenset(json.loads(task.kwargs_json))
        if asked not in seen:
            seen[asked] = _checked(*asked)
        task.entrypoint = seen[asked]


def _checked(entrypoint: str, names: frozenset[str]) -> str:
    """Return the entrypoint with its executor; raise an error if it does not take arguments of these names."""
    found = find_entrypoint(entrypoint)
    if found is None:
        return entrypoint
    if kind_of(found) == "job":
        cause = "it is a workflow (@job), not a task"
        raise EntrypointError(entrypoint=entrypoint, cause=cause, hint="Submit it by calling it.")
    check_call(unwrap(found), names, entrypoint)
    return with_its_executor(entrypoint, found)


def with_its_executor(entrypoint: str, found: object) -> str:
    """Return the entrypoint with the executor that the function found was marked with, unless it names one itself."""
    return entrypoint if executor_of(entrypoint) != PYTHON else with_executor(executor_in(found), entrypoint)


def find_entrypoint(entrypoint: str) -> Callable[..., Any] | None:
    """Return what an entrypoint names; None, with a warning, if its module is missing here.

    It may exist where workers run. In local mode there is no such place, and EntrypointError is raised.
    """
    try:
        return resolve(entrypoint)
    except EntrypointError as error:
        if is_local() or not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        log.warning("%s Workers must be able to import it.", error)
        return None


def check_defaults(function: Callable[..., Any], names: Iterable[str], entrypoint: str, *, complete: bool) -> None:
    """Raise SignatureMismatch for defaults that the function does not take.

    With `complete`, all required parameters must be among them.
    """
    given = frozenset(names)
    check_call(unwrap(function), given if complete else given | required_names(function), entrypoint)


def check_kwargs(kwargs: Mapping[str, object] | None, field: str) -> dict[str, object]:
    """Return a copy of the arguments as a dict; raise InputError if they are no mapping."""
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InputError(field=field, value=shorten(kwargs), rule="it must be a dict of arguments by name", hint="")
    return dict(kwargs or {})


def json_arguments(entrypoint: str, kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return JSON arguments converted to the types of the function's annotations; its module is imported.

    Raise an error that names the argument if one cannot be converted.
    """
    found = find_entrypoint(entrypoint)
    return dict(kwargs) if found is None else converted(hints_of(unwrap(found)), kwargs)


def unexposed(kwargs_json: str, field: str) -> str:
    """Return the encoded arguments; raise ValueExposed if they contain the value of a Secret resolved here."""
    if is_mentioned(kwargs_json):
        raise ValueExposed(what=field, hint=INSTEAD)
    return kwargs_json
