"""Inspect an entrypoint in a child process, which can be killed: finding a function imports the user's module.

`python -m aaiclick.orchestration.submitting.inspection NAME PLACE…` prints the facts about the function as one line of
JSON. With `-` before NAME, it reads arguments as JSON from stdin, converts them, and prints their stored form.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from aaiclick.config import settings
from aaiclick.errors import AaiclickError
from aaiclick.module_path import search_in
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, function_in
from aaiclick.orchestration.rules.placement import PlacementConstraints
from aaiclick.orchestration.rules.retries import RetryPolicy
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.rules.values.annotations import converted, hints_of, spec_of
from aaiclick.orchestration.rules.values.encoding import encode_kwargs
from aaiclick.orchestration.submitting.decorated_options import TASK_OPTIONS, OwnOptions
from aaiclick.orchestration.submitting.entrypoints import kind_of, resolve, unwrap
from aaiclick.orchestration.submitting.executors import executor_in

OPTIONS = {"job": OwnOptions._fields, "task": ("priority", *TASK_OPTIONS)}
"""The options that a decorator gives, by its kind."""
BARE = {"priority": 0, "critical": True, "stop_when_cut_off": True}
"""The options of a task that is an executor alone, without a function and its decorator; the others are None."""
EMPTY = inspect.Parameter.empty


class StandIn:
    """A stand-in for a factory or function that a child has inspected: kind, signature and options, but no body."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.__aaiclick__ = facts["kind"]
        options = facts["options"]
        for name in OPTIONS.get(facts["kind"], ()):
            given = options.get(name)
            retry = name == "retry" and given is not None
            setattr(self, name, RetryPolicy.from_json(given or None) if retry else given)
        self.executor = facts.get("executor", PYTHON)
        self.function = _function(facts["name"], facts["parameters"])

    def __call__(self, **_: object) -> None:
        raise AssertionError("a placeholder can be inspected, not called")


def _function(name: str, parameters: list[dict[str, Any]]) -> Any:
    def function(**_: object) -> None:
        raise AssertionError("a placeholder can be inspected, not called")

    kinds = {kind.name: kind for kind in (inspect._ParameterKind)}
    function.__name__ = name
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(each["name"], kinds[each["kind"]], default=EMPTY if each["required"] else _Default())
            for each in parameters
        ]
    )
    return function


class _Default:
    def __repr__(self) -> str:
        return "…"


def look_at(entrypoint: str) -> dict[str, Any]:
    """Import a function and return the facts about it; if it cannot be run, return the facts of the error."""
    try:
        found = resolve(entrypoint)
    except AaiclickError as error:
        facts = {name: str(value) for name, value in error.facts.items()}
        missing = isinstance(error.__cause__, ModuleNotFoundError)
        return {"refused": facts, "missing": missing}
    function = unwrap(found)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        parameters = [inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)]
    return {
        "kind": kind_of(found) if function_in(entrypoint) else "task",
        "name": str(getattr(function, "__name__", "function"))[:200],
        "executor": executor_in(found),
        "options": _options(found) if function_in(entrypoint) else BARE,
        "parameters": [
            {"name": each.name, "kind": each.kind.name, "required": _is_required(each)} for each in parameters
        ],
        "hints": {name: spec_of(hint) for name, hint in hints_of(function).items()},
    }


def _options(found: Any) -> dict[str, Any]:
    """Return the options that the decorator gives, as JSON data."""
    return {name: _plain(getattr(found, name)) for name in OPTIONS.get(kind_of(found) or "", ())}


def convert(entrypoint: str, kwargs: dict[str, object]) -> dict[str, Any]:
    """Convert arguments to the types of the function's annotations and return their stored form.

    If that fails, return the facts and the class name of the error.
    """
    try:
        hints = hints_of(unwrap(resolve(entrypoint)))
        return {"kwargs": encode_kwargs(converted(hints, kwargs), bytes_max=settings().value_bytes_max)}
    except AaiclickError as error:
        facts = {name: str(value) for name, value in error.facts.items()}
        return {"refused": facts, "error": type(error).__name__}


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is EMPTY


def _plain(value: object) -> object:
    """Return an option as JSON data, from which the same option is made again."""
    if isinstance(value, RetryPolicy):
        return value.to_json() or ""
    if isinstance(value, PlacementConstraints):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return value if value is None or type(value) in (int, float, bool) else str(value)


def main() -> None:
    """Write the answer to the original stdout. Fd 1 is redirected to /dev/null: an import may print."""
    answer_to, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    converts = sys.argv[1] == "-"
    given = json.load(sys.stdin) if converts else {}
    name, *places = sys.argv[2:] if converts else sys.argv[1:]
    search_in(*places)
    try:
        answer = convert(name, given) if converts else look_at(name)
    except BaseException as error:  # an import may call sys.exit, or raise anything
        cause = f"importing it raised {type(error).__name__}: {shorten(str(error))}"
        answer = {"refused": {"entrypoint": name, "cause": cause, "hint": ""}, "missing": False}
    os.write(answer_to, json.dumps(answer).encode() + b"\n")
    os._exit(0)  # does not wait for threads that the import has started


if __name__ == "__main__":
    main()
