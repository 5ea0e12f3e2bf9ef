"""The version of a function's code: a digest of its source and of what that was compiled to."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

_known: WeakKeyDictionary[Any, str | None] = WeakKeyDictionary()


def code_version(function: Callable[..., Any]) -> str | None:
    """Return a digest that changes when the function's own code does; None if its source cannot be found.

    Comments, blank lines and decorators do not count, nor do functions that it calls. The source is read from the file,
    which may have changed since it was imported. So the compiled code, which is what runs, counts too.
    """
    inner = inspect.unwrap(function)
    if inner not in _known:
        _known[inner] = _read(inner)
    return _known[inner]


def _read(function: Any) -> str | None:
    code = getattr(function, "__code__", None)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return None
    if not isinstance(code, types.CodeType):
        return None
    facts = "\n".join([_normal(source), *_compiled(code)])
    return hashlib.sha256(facts.encode("utf-8", "backslashreplace")).hexdigest()


def _normal(source: str) -> str:
    """Return the source of a function without comments, layout and decorators."""
    try:
        (found,) = ast.parse(textwrap.dedent(source)).body
    except (SyntaxError, ValueError):  # as of a lambda in the middle of a line
        return source
    if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        found.decorator_list = []
    return ast.unparse(found)


def _compiled(code: types.CodeType) -> list[str]:
    return [code.co_code.hex(), *code.co_names, *code.co_varnames, *code.co_freevars, *_constants(code.co_consts)]


def _constants(values: tuple[object, ...]) -> list[str]:
    found: list[str] = []
    for value in values:
        if isinstance(value, types.CodeType):
            found += _compiled(value)
        elif isinstance(value, tuple):
            found += ["(", *_constants(value), ")"]
        elif isinstance(value, frozenset):
            found += ["{", *sorted(_constants(tuple(value))), "}"]
        else:
            found.append(repr(value))
    return found
