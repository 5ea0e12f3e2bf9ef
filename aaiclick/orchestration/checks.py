"""What is checked before anything is submitted: that it can be run, and that nobody submits by importing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aaiclick.backend import is_local
from aaiclick.errors import EntrypointError, InputError, SubmitDuringImport, ValueExposed
from aaiclick.orchestration.models import Task
from aaiclick.orchestration.models.submission import INSTEAD
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
from aaiclick.telemetry.masks import is_mentioned

log = logging.getLogger("aaiclick")


def refuse_during_import(call: str) -> None:
    """A module that submits when it is imported would submit again in every worker."""
    if module := importing():
        raise SubmitDuringImport(call=call, module=module)


def check_entrypoints(tasks: Iterable[Task]) -> None:
    """Refuse what cannot be imported here, or does not take these arguments; each function is looked at once.

    Where workers run elsewhere, a module that is missing here may well be there: that is a warning. A `@job` is
    refused: only as the entry of a run does it stage its graph (`run_job`, schedules).
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    for task in tasks:
        names = frozenset(json.loads(task.kwargs_json))
        if (task.entrypoint, names) in seen:
            continue
        seen.add((task.entrypoint, names))
        found = find_entrypoint(task.entrypoint)
        if found is None:
            continue
        if kind_of(found) == "job":
            cause = "it is a workflow (@job), not a task"
            raise EntrypointError(entrypoint=task.entrypoint, cause=cause, hint="Submit it by calling it.")
        check_call(unwrap(found), names, task.entrypoint)


def find_entrypoint(entrypoint: str) -> Callable[..., Any] | None:
    """What an entrypoint names; None, with a warning, where its module is missing here and may be with the workers."""
    try:
        return resolve(entrypoint)
    except EntrypointError as error:
        if is_local() or not isinstance(error.__cause__, ModuleNotFoundError):
            raise
        log.warning("%s Workers must be able to import it.", error)
        return None


def check_defaults(function: Callable[..., Any], names: Iterable[str], entrypoint: str, *, complete: bool) -> None:
    """Refuse defaults that the function does not take; all that it needs must be among them if `complete`."""
    given = frozenset(names)
    check_call(unwrap(function), given if complete else given | required_names(function), entrypoint)


def check_kwargs(kwargs: Mapping[str, object] | None, field: str) -> dict[str, object]:
    """A copy of the arguments, if that is what they are."""
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InputError(field=field, value=shorten(kwargs), rule="a dict of arguments by their names", hint="")
    return dict(kwargs or {})


def json_arguments(entrypoint: str, kwargs: Mapping[str, object]) -> dict[str, object]:
    """JSON as the function's annotations promise it; refused by name if it cannot be that. Its module is imported."""
    found = find_entrypoint(entrypoint)
    return dict(kwargs) if found is None else converted(hints_of(unwrap(found)), kwargs)


def unexposed(kwargs_json: str, field: str) -> str:
    """The arguments, unless they hold what a Secret was resolved to here."""
    if is_mentioned(kwargs_json):
        raise ValueExposed(what=field, hint=INSTEAD)
    return kwargs_json
