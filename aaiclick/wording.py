"""Numbers of things, and values, as people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WRITTEN: dict[str, Callable[[Any], str]] = {  # by name: a message about a number loads no paths and no UUIDs
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
    """A number of things: no jobs, 1 job, 2 jobs; a plural that does not end in a bare s is given."""
    return f"{number or 'no'} {noun if number == 1 else plural or f'{noun}s'}"


def written(value: object) -> str | None:
    """A time, number, path or member as it is written, where its repr would name its class; None for others."""
    for kind in type(value).__mro__:
        if (write := _WRITTEN.get(f"{kind.__module__}.{kind.__qualname__}")) is not None:
            return write(value)
    return None
