"""What a worker is given, and what it reports."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Claim:
    """A worker's right to run a task: everything a runner needs, and the epoch that its reports must carry."""

    task_id: int
    epoch: int
    worker_id: int
    job_id: int
    group_id: int | None
    name: str
    entrypoint: str
    kwargs_json: str
    attempt: int
    timeout_s: float | None
    priority: int = 0
    inputs: dict[int, str | None] = field(default_factory=dict)
    """The stored results of the tasks that the arguments refer to."""
    members: dict[int, list[int]] = field(default_factory=dict)
    """The tasks of each group that the arguments refer to, in the order in which they were made."""


@dataclass(slots=True, frozen=True)
class Done:
    """The run came to its end with this result (encoded)."""

    task_id: int
    epoch: int
    result_json: str = "null"
    log_path: str | None = None


@dataclass(slots=True, frozen=True)
class Failure:
    """The run ended with an error; `error_types` is the exception's ancestry, for the retry policy."""

    task_id: int
    epoch: int
    error: str
    traceback: str | None = None
    error_types: tuple[str, ...] = ()
    permanent: bool = False
    log_path: str | None = None


Report = Done | Failure


@dataclass(slots=True)
class Receipt:
    """Which reports counted; the others came too late. `rippling`: there is more to do downstream."""

    accepted: set[tuple[int, int]] = field(default_factory=set)
    rippling: bool = False
