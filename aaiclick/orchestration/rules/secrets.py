"""`Secret`: a reference to a value in the worker's environment; the reference is stored, the value never is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.type_variables import AnyValue
from aaiclick.orchestration.rules.validation import shorten

Body = TypeVar("Body", bound=Callable[..., Any])

_KEEPS = "__aaiclick_keeps_secrets__"
_SOURCE = re.compile("env:([A-Za-z_][A-Za-z0-9_]{0,199})")


class Secret(AnyValue):
    """A reference to a value that is never stored: `Secret("env:NAME")` is read from the worker's environment.

    A Secret does not contain the value, only its source. The source is what is displayed, stored and sent.
    """

    __slots__ = ("source",)

    source: str

    def __init__(self, source: str) -> None:
        if type(source) is not str or not _SOURCE.fullmatch(source):
            # if the secret value itself was passed by mistake, it must not appear in the error
            shown = shorten(source) if type(source) is not str or source.startswith("env:") else "***"
            hint = "Write Secret('env:NAME'), where NAME is a variable that the workers have."
            raise InputError(field="Secret", value=shown, rule="it must be env: and the name of a variable", hint=hint)
        object.__setattr__(self, "source", source)

    @property
    def variable(self) -> str:
        """The name of the environment variable that holds the value."""
        return self.source.removeprefix("env:")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Secret cannot be changed")

    def __repr__(self) -> str:
        return f"Secret({self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.source == self.source

    def __hash__(self) -> int:
        return hash((Secret, self.source))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self.source,)


def keeping_secrets(function: Body) -> Body:
    """Mark a function that gets Secrets unresolved, because it passes its arguments on to tasks."""
    setattr(function, _KEEPS, True)
    return function


def keeps_secrets(function: object) -> bool:
    """Return whether `keeping_secrets` has marked the function."""
    return hasattr(function, _KEEPS)


def mentions_secrets(text: str | None) -> bool:
    """Return whether encoded values may contain Secrets: a quick search, which may err to True."""
    return text is not None and '"secret"' in text


def secrets_in(value: object) -> Iterator[Secret]:
    """Yield the Secrets inside plain data: dicts, lists, tuples and sets."""
    if isinstance(value, Secret):
        yield value
    elif type(value) is dict:
        for key, item in value.items():
            yield from secrets_in(key)
            yield from secrets_in(item)
    elif type(value) in (list, tuple, set, frozenset):
        for item in value:  # type: ignore[attr-defined]
            yield from secrets_in(item)


def revealed(value: object, value_of: Callable[[Secret], str]) -> object:
    """Return plain data with each Secret replaced by its value."""
    if isinstance(value, Secret):
        return value_of(value)
    if type(value) is dict:
        return {revealed(key, value_of): revealed(item, value_of) for key, item in value.items()}
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(revealed(item, value_of) for item in value)  # type: ignore[call-arg, attr-defined]
    return value
