"""Texts for messages: a count with its noun, and values such as times and paths without their repr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WRITTEN: dict[str, Callable[[Any], str]] = {  # keyed by name, so as not to import these classes
    "datetime.datetime": lambda value: value.isoformat(sep=" "),
    "datetime.date": lambda value: value.isoformat(),
    "datetime.time": lambda value: value.isoformat(),
    "datetime.timedelta": str,
    "decimal.Decimal": str,
    "enum.Enum": lambda value: str(value.value),
    "pathlib.PurePath": str,
    "uuid.UUID": str,
}


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: no jobs, 1 job, 2 jobs. Pass `plural` if it is not the noun with an s."""
    return f"{number or 'no'} {noun if number == 1 else plural or f'{noun}s'}"


def written(value: object) -> str | None:
    """Return the text of a time, Decimal, path, UUID or Enum member, whose repr would name its class; else None."""
    for kind in type(value).__mro__:
        if (write := _WRITTEN.get(f"{kind.__module__}.{kind.__qualname__}")) is not None:
            return write(value)
    return None
