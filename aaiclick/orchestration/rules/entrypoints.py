"""Entrypoints that came from outside: written `@module.function`, they stand for decorated functions only.

The mark travels with the task, so that whoever runs it checks again what was checked when it was submitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aaiclick.errors import EntrypointError

MARK = "@"

_stand_ins: ContextVar[Mapping[str, Any] | None] = ContextVar("aaiclick_stand_ins", default=None)


def is_marked(entrypoint: object) -> bool:
    """Whether it came from outside."""
    return type(entrypoint) is str and entrypoint.startswith(MARK)


def marked(entrypoint: str) -> str:
    """The form of an entrypoint that came from outside."""
    return MARK + plain(entrypoint)


def plain(entrypoint: str) -> str:
    """The dotted name, whether it came from outside or not."""
    return entrypoint[len(MARK) :] if is_marked(entrypoint) else entrypoint


def is_under(entrypoint: str, prefixes: Sequence[str]) -> bool:
    """Whether it lies in one of these packages or modules."""
    return any(f"{plain(entrypoint)}.".startswith(f"{prefix}.") for prefix in prefixes)


def check_marked(entrypoint: str, kind: str | None, prefixes: Sequence[str]) -> None:
    """Refuse what came from outside and is not decorated, or lies elsewhere than this process allows."""
    if not is_marked(entrypoint):
        return
    if kind is None:
        cause, hint = "from outside, only functions marked @task or @job can be run", "Mark it."
        raise EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)
    if prefixes and not is_under(entrypoint, prefixes):
        raise not_under(entrypoint, prefixes)


def not_under(entrypoint: str, prefixes: Sequence[str]) -> EntrypointError:
    """What is said of an entrypoint that lies elsewhere."""
    allowed = ", ".join(prefixes) or "none"
    cause, hint = f"from outside, these may be run: {allowed}", "They are set by AAICLICK_ENTRYPOINT_PREFIXES."
    return EntrypointError(entrypoint=plain(entrypoint), cause=cause, hint=hint)


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
