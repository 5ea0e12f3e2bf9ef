"""The fields of log lines (job, task, epoch, worker), bound for the context in which the lines are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType

Field = str | int | None
Late = Callable[[], Field]
"""A function that returns a field's value. It is called when a line is written, for values that change."""

_bound: ContextVar[Mapping[str, Field | Late]] = ContextVar("fields", default=MappingProxyType({}))

_of_this_process: dict[str, Field] = {}

EXTRA = "aaiclick_fields"


class bound:
    """A context manager that adds these fields to each line logged inside it, also by asyncio tasks started inside it.

    It is a class because each run of a task enters one, and a generator-based context manager costs twice as much.
    """

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: Field | Late) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _bound.set({**_bound.get(), **self._fields})

    def __exit__(self, *error: object) -> None:
        _bound.reset(self._token)


def bind_process(**fields: Field) -> None:
    """Set the fields of all log lines of this process, on all threads. They replace those set here before."""
    _of_this_process.clear()
    _of_this_process.update(fields)


def about(**fields: Field) -> dict[str, Mapping[str, Field]]:
    """Return the `extra` argument that adds fields to one line: `log.warning("…", extra=about(job=job_id))`."""
    return {EXTRA: fields}


def bound_fields() -> dict[str, str]:
    """Return the fields of the process and of this context, as text: ids exceed the safe range of JSON numbers."""
    here = {**_of_this_process, **_bound.get()}
    found = {name: value() if callable(value) else value for name, value in here.items()}
    return {name: str(value) for name, value in found.items() if value is not None}
