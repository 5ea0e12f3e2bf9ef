"""Executors in entrypoints. An executor says what a body is: a Python function, a command, a call of an address.

`module.function` is a Python function. `shell:` is a command that the task's arguments describe, and
`shell:module.function` one that the function describes by what it returns.
"""

from __future__ import annotations

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import shorten

PYTHON = "python"
"""The executor of Python functions, which entrypoints do not name."""

SIGN = ":"
OLDER = {"python_executor": PYTHON, "shell_executor": "shell", "rest_executor": "rest", "docker_executor": "docker"}
"""Names that are accepted in place of others."""

NAME_LENGTH_MAX = 50
_MARKS = ("@", "~")


def executor_of(entrypoint: str) -> str:
    """Return the name of the executor that runs the bodies of an entrypoint."""
    return _unmarked(entrypoint).partition(SIGN)[0] if SIGN in entrypoint else PYTHON


def function_in(entrypoint: str) -> str:
    """Return the dotted name in an entrypoint, without a mark; empty if it names only an executor."""
    return _unmarked(entrypoint).rpartition(SIGN)[2]


def _unmarked(entrypoint: str) -> str:
    return entrypoint[1:] if entrypoint.startswith(_MARKS) else entrypoint


def with_executor(executor: str, entrypoint: str) -> str:
    """Return the entrypoint with this executor; its mark stays."""
    if executor == PYTHON:
        return entrypoint
    mark = entrypoint[:1] if entrypoint.startswith(_MARKS) else ""
    return f"{mark}{executor}{SIGN}{function_in(entrypoint)}"


def last_name(entrypoint: str) -> str:
    """Return a name for a task: that of its function, else that of its executor."""
    return function_in(entrypoint).rpartition(".")[2] or executor_of(entrypoint)


def is_name(entrypoint: str) -> bool:
    """Return whether a text without a mark has the form of an entrypoint."""
    executor, sign, function = entrypoint.rpartition(SIGN)
    if sign and not executor.isidentifier():
        return False
    return (not function and bool(sign)) or all(part.isidentifier() for part in function.split("."))


def check_executor(name: object) -> str:
    """Return the name of an executor, as it is stored. Raise InputError if it cannot be one."""
    if type(name) is str and name.isidentifier() and name.isascii() and len(name) <= NAME_LENGTH_MAX:
        return OLDER.get(name, name)
    rule = f"it must be the name of an executor: letters, digits and _, at most {NAME_LENGTH_MAX}"
    raise InputError(field="executor", value=shorten(name), rule=rule, hint="Such as shell or rest.")
