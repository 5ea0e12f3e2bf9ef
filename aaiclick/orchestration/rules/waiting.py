"""Whom and what a task may wait for: tasks and groups before it, workers that hold it, the fleet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Blocker:
    """A task or group that the task waits for."""

    id: int
    kind: str
    name: str
    status: str
    """The status of a task; "open" or "failed" for a group."""
    open_count: int = 0
    """The number of tasks and groups directly in a group that are not complete."""
    gate: str | None = None
    """The name of the group around the task that waits for the blocker; None if the task itself waits."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The worker that holds the task, or that its job is reserved for."""

    id: int
    name: str | None = None
    hostname: str = ""
    pid: int = 0
    is_live: bool = False
    unreported_s: float = 0.0
    """Seconds since when the worker has had results that it could not report."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The live workers, counted, with their slots."""

    live: int = 0
    draining: int = 0
    """Those that are asked to leave, or whose node is cordoned."""
    full: int = 0
    """The number of workers that are not draining and have no free slot."""
    slots: int = 0
    taken: int = 0
