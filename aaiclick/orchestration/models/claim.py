"""What a worker is given, and what it reports."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from aaiclick.orchestration.models.children import Children


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
    outputs: dict[int, int] = field(default_factory=dict)
    """Of those groups, the ones that have an output, each with the task that gives it."""
    generation: int = 0
    """How often the task was cleared."""
    stop_when_cut_off: bool = True
    """Whether its body ends in time when the worker is cut off from the state, before another begins elsewhere."""
    registered: bool = False
    """Whether the first table that it may make is known already: so it is for those that are given any."""
    installation: str = ""
    """What the installation is called, which its tables in ClickHouse carry in their comments."""

    @property
    def id(self) -> int:
        """The task's id."""
        return self.task_id

    @property
    def kwargs(self) -> dict[str, Any]:
        """The task's arguments in their stored form, as `Task.kwargs` has them."""
        found: dict[str, Any] = json.loads(self.kwargs_json)
        return found

    @property
    def run_epoch(self) -> int:
        """Older name of `epoch`."""
        return self.epoch

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at the task until someone clears it (pitfall T11)."""
        return f"{self.task_id}-{self.generation}"


@dataclass(slots=True, frozen=True)
class Done:
    """The run came to its end with this result (encoded), and made these tasks and groups.

    `holds`: it used tables. `made`: those of its own that may be there; None if that is not known. `unmet`: what it
    expected of its data and did not find, each with the event that tells it.
    """

    task_id: int
    epoch: int
    result_json: str = "null"
    log_path: str | None = None
    children: Children | None = None
    holds: bool = False
    made: tuple[str, ...] | None = None
    unmet: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True, frozen=True)
class Failure:
    """The run ended with an error; `error_types` is the exception's ancestry, for the retry policy.

    `crashed`: the process that ran it died, which is counted apart from failures. `holds`, `made`, `unmet`: see Done.
    """

    task_id: int
    epoch: int
    error: str
    traceback: str | None = None
    error_types: tuple[str, ...] = ()
    permanent: bool = False
    log_path: str | None = None
    crashed: bool = False
    holds: bool = False
    made: tuple[str, ...] | None = None
    unmet: tuple[tuple[str, str], ...] = ()


Report = Done | Failure


@dataclass(slots=True)
class Receipt:
    """Which reports counted, now or the first time that they came; those that are named nowhere came too late.

    `rippling`: there is more to do downstream.
    """

    accepted: set[tuple[int, int]] = field(default_factory=set)
    rippling: bool = False
    due_s: float | None = None
    """How long until the first of those that will be tried again is due."""
    conflicts: set[tuple[int, int]] = field(default_factory=set)
    """Runs that had told something else before, or in the same batch: that stays."""


@dataclass(slots=True, frozen=True)
class Held:
    """A run that a worker holds. `started`: its body has begun, which the state need not know yet."""

    task_id: int
    epoch: int
    started: bool = False
    log_path: str | None = None


class Stop(StrEnum):
    """Why a worker should end a run."""

    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(slots=True)
class Orders:
    """The answer to a heartbeat."""

    alive: bool = True
    """False: the session is over, and with it every claim of it."""
    drain: bool = False
    """Take no more work, finish what runs, and leave."""
    stop: dict[tuple[int, int], Stop] = field(default_factory=dict)
    """Runs that are no longer this worker's, by (task, epoch)."""
