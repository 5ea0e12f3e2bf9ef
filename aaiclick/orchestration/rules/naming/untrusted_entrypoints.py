"""Entrypoints that came from outside, and what they may name.

`@module.function` was named from outside: it stands for a decorated function of an allowed module only.
`~module.function` was named by code that is trusted, in a job whose arguments came from outside: what it names by a
text is judged like that. The marks travel with the tasks: whoever runs one checks again what was checked when it came.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aaiclick.errors import EntrypointError

MARK = "@"
CARRIED = "~"
OURS = "aaiclick"
EXAMPLES = ("aaiclick.orchestration.examples",)
"""What of ours may be run from outside. The rest is no target: some of it takes the name of a function to call."""

_stand_ins: ContextVar[Mapping[str, Any] | None] = ContextVar("aaiclick_stand_ins", default=None)
_arguments: ContextVar[bool | None] = ContextVar("aaiclick_arguments_from_outside", default=None)
_under_way: list[None] = []
"""One for each block in this process whose arguments came from outside."""


# ---------------------------------------------------------------- marks


def is_marked(entrypoint: object) -> bool:
    """Whether it was named from outside."""
    return type(entrypoint) is str and entrypoint.startswith(MARK)


def has_outside_arguments(entrypoint: str) -> bool:
    """Whether its job came from outside, whoever named it."""
    return entrypoint.startswith((MARK, CARRIED))


def marked(entrypoint: str) -> str:
    """The form of an entrypoint that was named from outside."""
    return MARK + plain(entrypoint)


def plain(entrypoint: str) -> str:
    """The dotted name, wherever it came from."""
    return entrypoint[1:] if type(entrypoint) is str and has_outside_arguments(entrypoint) else entrypoint


def shown(entrypoint: str) -> str:
    """As people see it: that somebody outside named it is worth telling."""
    return entrypoint.removeprefix(CARRIED)


# ---------------------------------------------------------------- in a job that came from outside


class arguments_from_outside:
    """Inside, texts that name functions may have come with the arguments.

    On threads that a body begins as well: those know nothing of their surroundings, so whoever was not told is judged
    while there is any such block in the process. A class, since each run is inside of one: a generator costs twice.
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
    """Whether the arguments of what is made here came from outside."""
    told = _arguments.get()
    return bool(_under_way) if told is None else told


def named(entrypoint: str, prefixes: Sequence[str]) -> str:
    """An entrypoint that a text names here: in a job that came from outside it obeys what is asked of those."""
    if not are_from_outside() or type(entrypoint) is not str:
        return entrypoint
    check_asked(entrypoint, prefixes)
    return marked(entrypoint)


def carried(entrypoint: str) -> str:
    """An entrypoint that trusted code has chosen: it tells whether its job came from outside."""
    if not are_from_outside() or type(entrypoint) is not str or has_outside_arguments(entrypoint):
        return entrypoint
    return CARRIED + entrypoint


# ---------------------------------------------------------------- what may be named from outside


def is_under(entrypoint: str, prefixes: Sequence[str]) -> bool:
    """Whether it lies in one of these packages or modules, or is one of these functions."""
    return any(f"{plain(entrypoint)}.".startswith(f"{prefix}.") for prefix in prefixes)


def allowed_for(entrypoint: str, prefixes: Sequence[str]) -> Sequence[str]:
    """What a process allows that was told nothing: where it was submitted the name was looked at, so its package."""
    return prefixes or (plain(entrypoint).partition(".")[0],)


def check_asked(entrypoint: str, allowed: Sequence[str]) -> None:
    """Refuse a name, before anything is imported, that nobody may ask for from outside."""
    if not is_under(entrypoint, allowed):
        raise not_under(entrypoint, allowed)
    _refuse_ours(entrypoint, entrypoint)
    if any(part.startswith("__") for part in plain(entrypoint).split(".")):
        cause, hint = "from outside, no part of a name may begin with __", "Write module.function."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def check_found(entrypoint: str, kind: str | None, function: Any, allowed: Sequence[str]) -> None:
    """Refuse what was named from outside and is not decorated, or is written elsewhere than is allowed."""
    if kind is None:
        cause, hint = "from outside, only functions marked @task or @job can be run", "Mark it."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)
    for own in _own_names(entrypoint, function):
        _refuse_ours(entrypoint, own)
        if not is_under(own, allowed):
            raise _is_elsewhere(entrypoint, own, allowed)


def check_step(entrypoint: str, place: object) -> None:
    """Refuse to go on, on the way to what was named from outside, through anything of its module but a class."""
    if is_marked(entrypoint) and not isinstance(place, type):
        way = f"its name leads through a {type(place).__name__}"
        cause = f"{way}; from outside, only functions marked @task or @job can be run"
        hint = "Name it by the module in which it is written, and its class."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def _own_names(entrypoint: str, function: Any) -> Iterator[str]:
    """What a function says of itself, and where the code is that it wraps and that wraps it.

    functools.wraps lets a function tell another's name. A decorator's own code, which is made anew for each function
    that it wraps, may be anybody's: whoever wrote the function has chosen it.
    """
    chain = list(_wrapped(function))
    if not all(isinstance(each, types.FunctionType) for each in chain):
        cause, hint = "from outside, only plain functions can be run", "Mark a function that is written with def."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)
    yield f"{function.__module__}.{function.__qualname__}"
    for each in chain:
        if each is chain[-1] or "<locals>" not in each.__code__.co_qualname:
            yield f"{each.__globals__.get('__name__')}.{each.__code__.co_qualname}"


def _wrapped(function: Any) -> Iterator[Any]:
    """A function, and what it says that it wraps, down to the last."""
    seen: set[int] = set()
    while function is not None and id(function) not in seen:
        seen.add(id(function))
        yield function
        function = getattr(function, "__wrapped__", None)


def _refuse_ours(entrypoint: str, own: str) -> None:
    if is_under(own, (OURS,)) and not is_under(own, EXAMPLES):
        cause, hint = "aaiclick's own functions cannot be run from outside", "Call it from a task of yours."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def _is_elsewhere(entrypoint: str, own: str, allowed: Sequence[str]) -> EntrypointError:
    cause = f"it is {own}, and from outside, these may be run: {', '.join(allowed)}"
    hint = "They are set by AAICLICK_ENTRYPOINT_PREFIXES, for the server and for workers."
    return EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


def not_under(entrypoint: str, prefixes: Sequence[str]) -> EntrypointError:
    """What is said of an entrypoint that lies elsewhere."""
    allowed = ", ".join(prefixes) or "none"
    cause, hint = f"from outside, these may be run: {allowed}", "They are set by AAICLICK_ENTRYPOINT_PREFIXES."
    return EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


# ---------------------------------------------------------------- what stands for them


@contextmanager
def standing_in(found: Mapping[str, Any]) -> Iterator[None]:
    """Inside, these stand for their entrypoints: nothing of theirs is imported here."""
    token = _stand_ins.set(found)
    try:
        yield
    finally:
        _stand_ins.reset(token)


def stand_in_for(entrypoint: object) -> Any:
    """What stands for an entrypoint here, or None."""
    known = _stand_ins.get()
    return known.get(entrypoint) if known and isinstance(entrypoint, str) else None
