"""Checks of entrypoints that came from outside (through the server), and the marks that such entrypoints carry.

`@module.function` was named from outside: it may only be a decorated function of an allowed module.
`~module.function` was named by trusted code in a job whose arguments came from outside: entrypoints that this code
takes from texts are checked like those. The marks are stored with the tasks, and workers repeat the checks.

An executor without a function (`shell:`) may be named from outside only if it is itself among the allowed prefixes.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aaiclick.errors import EntrypointError
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, SIGN, executor_of, function_in

MARK = "@"
CARRIED = "~"
OURS = "aaiclick"
EXAMPLES = ("aaiclick.orchestration.examples",)
"""The modules of aaiclick that may be run from outside. The rest may not: some of it calls a function given by name."""

_stand_ins: ContextVar[Mapping[str, Any] | None] = ContextVar("aaiclick_stand_ins", default=None)
_arguments: ContextVar[bool | None] = ContextVar("aaiclick_arguments_from_outside", default=None)
_under_way: list[None] = []
"""One element for each open block of `arguments_from_outside` in this process."""


# ---------------------------------------------------------------- marks


def is_marked(entrypoint: object) -> bool:
    """Return whether the entrypoint was named from outside."""
    return type(entrypoint) is str and entrypoint.startswith(MARK)


def has_outside_arguments(entrypoint: str) -> bool:
    """Return whether the entrypoint's job came from outside, even if trusted code named the entrypoint."""
    return entrypoint.startswith((MARK, CARRIED))


def marked(entrypoint: str) -> str:
    """Return the entrypoint with the mark of one named from outside."""
    return MARK + plain(entrypoint)


def plain(entrypoint: str) -> str:
    """Return the dotted name without a mark."""
    return entrypoint[1:] if type(entrypoint) is str and has_outside_arguments(entrypoint) else entrypoint


def shown(entrypoint: str) -> str:
    """Return the entrypoint for display: with the mark `@`, without the mark `~`."""
    return entrypoint.removeprefix(CARRIED)


# ---------------------------------------------------------------- in a job that came from outside


class arguments_from_outside:
    """Context manager: texts that name functions inside the block may have come with the arguments.

    Threads started by a body do not inherit the context variable. They count as inside while any such block is open
    in the process. A class, because every run enters one: a generator would cost twice as much.
    """

    __slots__ = ("_are", "_token")

    def __init__(self, are: bool = True) -> None:
        self._are = are

    def __enter__(self) -> None:
        self._token = _arguments.set(self._are)
        if self._are:
            _under_way.append(None)

    def __exit__(self, *error: object) -> None:
        _arguments.reset(self._token)
        if self._are:
            _under_way.pop()


def are_from_outside() -> bool:
    """Return whether arguments of tasks made by the caller may have come from outside."""
    told = _arguments.get()
    return bool(_under_way) if told is None else told


def named(entrypoint: str, prefixes: Sequence[str]) -> str:
    """Return an entrypoint that was given as text; in a job from outside it is checked and marked."""
    if not are_from_outside() or type(entrypoint) is not str:
        return entrypoint
    check_asked(entrypoint, prefixes)
    return marked(entrypoint)


def carried(entrypoint: str) -> str:
    """Return an entrypoint that trusted code has chosen, marked with `~` in a job from outside."""
    if not are_from_outside() or type(entrypoint) is not str or has_outside_arguments(entrypoint):
        return entrypoint
    return CARRIED + entrypoint


# ---------------------------------------------------------------- what may be named from outside


def is_under(entrypoint: str, prefixes: Sequence[str]) -> bool:
    """Return whether the entrypoint is in one of these packages or modules, or is one of these functions.

    An executor without a function must be among the prefixes itself.
    """
    function = function_in(entrypoint)
    if not function:
        return f"{executor_of(entrypoint)}{SIGN}" in prefixes
    return any(f"{function}.".startswith(f"{prefix}.") for prefix in prefixes)


def allowed_for(entrypoint: str, prefixes: Sequence[str]) -> Sequence[str]:
    """Return the prefixes, or the entrypoint's own package if there are none.

    For a process without AAICLICK_ENTRYPOINT_PREFIXES: the name was already checked where it was submitted. Executors
    belong to no package: without the setting, none may be named from outside.
    """
    function = function_in(entrypoint)
    return prefixes or ((function.partition(".")[0],) if function else ())


def check_asked(entrypoint: str, allowed: Sequence[str]) -> None:
    """Raise EntrypointError, before anything is imported, if the name may not be run from outside."""
    if not is_under(entrypoint, allowed):
        raise not_under(entrypoint, allowed)
    _refuse_ours(entrypoint, entrypoint)
    if any(part.startswith("__") for part in function_in(entrypoint).split(".")):
        cause, hint = "no part of a name from outside may begin with __", "Write module.function."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def check_executor_asked(entrypoint: str, marked_with: str) -> None:
    """Raise EntrypointError if the entrypoint names another executor than the function found is marked with.

    Else a function that returns a list could be made a command from outside.
    """
    asked = executor_of(entrypoint)
    if asked not in (PYTHON, marked_with):
        cause, hint = f"it is not marked with executor={asked!r}", "Name it without an executor."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def check_found(entrypoint: str, kind: str | None, function: Any, allowed: Sequence[str]) -> None:
    """Raise EntrypointError if the function found is not decorated, or its code is outside the allowed modules."""
    if kind is None:
        cause, hint = "from outside, only functions marked @task or @job can be run", "Mark it."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)
    for own in _own_names(entrypoint, function):
        _refuse_ours(entrypoint, own)
        if not is_under(own, allowed):
            raise _is_elsewhere(entrypoint, own, allowed)


def check_step(entrypoint: str, place: object) -> None:
    """Raise EntrypointError if the dotted name of a marked entrypoint leads through anything but a class."""
    if is_marked(entrypoint) and not isinstance(place, type):
        way = f"its name leads through a {type(place).__name__}"
        cause = f"{way}; from outside, only functions marked @task or @job can be run"
        hint = "Name it by the module that defines it, and its class."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def _own_names(entrypoint: str, function: Any) -> Iterator[str]:
    """Yield the function's declared name, and the places of its code and of the code that it wraps.

    The declared name is not enough: functools.wraps copies another function's name. The wrapper code of a decorator,
    which has `<locals>` in its qualified name, is left out: the function's author has chosen the decorator.
    """
    chain = list(_wrapped(function))
    if not all(isinstance(each, types.FunctionType) for each in chain):
        cause, hint = "from outside, only plain functions can be run", "Mark a function defined with def."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)
    yield f"{function.__module__}.{function.__qualname__}"
    for each in chain:
        if each is chain[-1] or "<locals>" not in each.__code__.co_qualname:
            yield f"{each.__globals__.get('__name__')}.{each.__code__.co_qualname}"


def _wrapped(function: Any) -> Iterator[Any]:
    """Yield a function and the chain of its `__wrapped__`."""
    seen: set[int] = set()
    while function is not None and id(function) not in seen:
        seen.add(id(function))
        yield function
        function = getattr(function, "__wrapped__", None)


def _refuse_ours(entrypoint: str, own: str) -> None:
    if is_under(own, (OURS,)) and not is_under(own, EXAMPLES):
        cause, hint = "aaiclick's own functions cannot be run from outside", "Call it from a task of your own."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def _is_elsewhere(entrypoint: str, own: str, allowed: Sequence[str]) -> EntrypointError:
    cause = f"it is {own}, and from outside, these may be run: {', '.join(allowed)}"
    hint = "AAICLICK_ENTRYPOINT_PREFIXES sets them, for the server and for workers."
    return EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def not_under(entrypoint: str, prefixes: Sequence[str]) -> EntrypointError:
    """Return the error for an entrypoint outside the allowed prefixes."""
    allowed = ", ".join(prefixes) or "none"
    cause, hint = f"from outside, these may be run: {allowed}", "AAICLICK_ENTRYPOINT_PREFIXES sets them."
    return EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


# ---------------------------------------------------------------- what stands for them


@contextmanager
def standing_in(found: Mapping[str, Any]) -> Iterator[None]:
    """Replace entrypoints by these objects inside the block, so that their modules are not imported."""
    token = _stand_ins.set(found)
    try:
        yield
    finally:
        _stand_ins.reset(token)


def stand_in_for(entrypoint: object) -> Any:
    """Return the object that replaces an entrypoint here, or None."""
    known = _stand_ins.get()
    return known.get(entrypoint) if known and isinstance(entrypoint, str) else None
