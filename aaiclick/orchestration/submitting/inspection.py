"""Look at an entrypoint in a process of its own, which can be killed: finding a function imports the user's module.

`python -m aaiclick.orchestration.submitting.inspection NAME PLACE…` prints what was found as one line of JSON.
After a `-`, it converts the arguments that it reads, as JSON, and prints how they are stored.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from typing import Any

from aaiclick.config import settings
from aaiclick.errors import AaiclickError
from aaiclick.module_path import search_in
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.rules.values.annotations import converted, hints_of, spec_of
from aaiclick.orchestration.rules.values.encoding import encode_kwargs
from aaiclick.orchestration.submitting.entrypoints import kind_of, resolve, unwrap

OPTIONS = ("priority", "timeout_s", "fail_fast", "preservation_mode")
EMPTY = inspect.Parameter.empty


class StandIn:
    """What stands for a function that was looked at elsewhere: its kind, its parameters and its options."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.__aaiclick__ = facts["kind"]
        self.priority, self.timeout_s, self.fail_fast, self.preservation_mode = map(facts["options"].get, OPTIONS)
        self.function = _function(facts["name"], facts["parameters"])

    def __call__(self, **_: object) -> None:
        raise AssertionError("a stand-in is looked at, never called")


def _function(name: str, parameters: list[dict[str, Any]]) -> Any:
    def function(**_: object) -> None:
        raise AssertionError("a stand-in is looked at, never called")

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
    """What a function is, or why it cannot be run; its module is imported."""
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
        "kind": kind_of(found),
        "name": str(getattr(function, "__name__", "function"))[:200],
        "options": {name: _plain(getattr(found, name, None)) for name in OPTIONS} if kind_of(found) == "job" else {},
        "parameters": [
            {"name": each.name, "kind": each.kind.name, "required": _is_required(each)} for each in parameters
        ],
        "hints": {name: spec_of(hint) for name, hint in hints_of(function).items()},
    }


def convert(entrypoint: str, kwargs: dict[str, object]) -> dict[str, Any]:
    """The text of arguments as the function's annotations promise them, or why they cannot be that."""
    try:
        hints = hints_of(unwrap(resolve(entrypoint)))
        return {"kwargs": encode_kwargs(converted(hints, kwargs), bytes_max=settings().value_bytes_max)}
    except AaiclickError as error:
        facts = {name: str(value) for name, value in error.facts.items()}
        return {"refused": facts, "error": type(error).__name__}


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is EMPTY


def _plain(value: object) -> object:
    return value if value is None or type(value) in (int, float, bool) else str(value)


def main() -> None:
    """Answer on what was stdout; whatever an import prints goes nowhere."""
    answer_to, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    converts = sys.argv[1] == "-"
    given = json.load(sys.stdin) if converts else {}
    name, *places = sys.argv[2:] if converts else sys.argv[1:]
    search_in(*places)
    try:
        answer = convert(name, given) if converts else look_at(name)
    except BaseException as error:  # an import may end the process, or raise anything
        cause = f"importing it raised {type(error).__name__}: {shorten(str(error))}"
        answer = {"refused": {"entrypoint": name, "cause": cause, "hint": ""}, "missing": False}
    os.write(answer_to, json.dumps(answer).encode() + b"\n")
    os._exit(0)  # threads that the import has left behind are not waited for


if __name__ == "__main__":
    main()
