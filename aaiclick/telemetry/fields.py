"""What log lines are about: the job, task, epoch and worker of whatever is going on, bound where it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType

Field = str | int | None
Late = Callable[[], Field]
"""A field that is known later, or changes: asked when a line is written."""

_bound: ContextVar[Mapping[str, Field | Late]] = ContextVar("fields", default=MappingProxyType({}))

_of_this_process: dict[str, Field] = {}

EXTRA = "aaiclick_fields"


class bound:
    """Let every line that is logged meanwhile, here and in what is begun here, carry these fields.

    A class, since each run of a task is inside of one: a generator costs twice as much.
    """

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: Field | Late) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _bound.set({**_bound.get(), **self._fields})

    def __exit__(self, *error: object) -> None:
        _bound.reset(self._token)


def bind_process(**fields: Field) -> None:
    """Let every line of this process, on whichever thread, carry these fields and no others."""
    _of_this_process.clear()
    _of_this_process.update(fields)


def about(**fields: Field) -> dict[str, Mapping[str, Field]]:
    """Fields of one line: `log.warning("…", extra=about(job=job_id))`."""
    return {EXTRA: fields}


def bound_fields() -> dict[str, str]:
    """The fields that are bound here, as text: ids are larger than numbers of JSON may be."""
    here = {**_of_this_process, **_bound.get()}
    found = {name: value() if callable(value) else value for name, value in here.items()}
    return {name: str(value) for name, value in found.items() if value is not None}
