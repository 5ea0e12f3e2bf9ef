"""The messages between a worker and its coordinator: claims, reports with their receipts, heartbeats with orders."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from aaiclick.orchestration.models.cached import CacheKey
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.rules.naming.executor_names import executor_of
from aaiclick.orchestration.rules.resources import Granted


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
    """Of those groups, the ones that have an output, each with the id of the output task."""
    generation: int = 0
    """How often the task was cleared."""
    stop_when_cut_off: bool = True
    """Whether the body must be stopped if the worker is cut off from the database, before another run can begin."""
    cache_policy: str | None = None
    """The options `cache` and `idempotency_key` that were given with the call; None: those of the function count."""
    registered: bool = False
    """Whether the first table of the run is registered already; the claim does so for tasks that are given tables."""
    installation: str = ""
    """The name of the installation, which is written into the comments of its tables in ClickHouse."""
    lane: int = 0
    """What the task needs of whoever runs it; 0 is nothing."""
    grants: list[Granted] = field(default_factory=list)
    """The resources that its run holds until its body is dead."""

    @property
    def id(self) -> int:
        """The task's id."""
        return self.task_id

    @property
    def kwargs(self) -> dict[str, Any]:
        """The task's arguments in their stored form, the same as `Task.kwargs`."""
        found: dict[str, Any] = json.loads(self.kwargs_json)
        return found

    @property
    def executor(self) -> str:
        """The executor of the task's body; `python` calls a function."""
        return executor_of(self.entrypoint)

    @property
    def run_epoch(self) -> int:
        """Older name of `epoch`."""
        return self.epoch

    @property
    def idempotency_key(self) -> str:
        """A key that is the same for every attempt at the task until the task is cleared (pitfall T11)."""
        return f"{self.task_id}-{self.generation}"


@dataclass(slots=True)  # not frozen: each run makes one, which would take four times as long
class Done:
    """The report of a run that succeeded: its encoded result, and the tasks and groups it made.

    `holds`: whether it used tables. `made`: the tables of the run that may exist; None if that is not known. `unmet`:
    the expectations that its data did not meet, as (move of the event, text).
    """

    task_id: int
    epoch: int
    result_json: str = "null"
    log_path: str | None = None
    children: Children | None = None
    holds: bool = False
    made: tuple[str, ...] | None = None
    unmet: tuple[tuple[str, str], ...] = ()
    remember: CacheKey | None = None
    """The key under which the result is to be remembered."""


@dataclass(slots=True, frozen=True)
class Failure:
    """The report of a run that failed. `error_types`: names of the exception's classes, for the retry policy.

    `crashed`: the process of the run died, which is counted apart from failures. `skipped`: the body said that there is
    nothing to do, which is no failure of the task. `holds`, `made`, `unmet`: see Done.
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
    skipped: bool = False


Report = Done | Failure


@dataclass(slots=True)
class Receipt:
    """The answer to a batch of reports. `accepted`: reports that were applied, now or when they first arrived.

    A report in neither `accepted` nor `conflicts` came too late. `rippling`: effects downstream are still to be
    applied.
    """

    accepted: set[tuple[int, int]] = field(default_factory=set)
    rippling: bool = False
    due_s: float | None = None
    """Seconds until the first retry of these tasks is due; None if there is none."""
    conflicts: set[tuple[int, int]] = field(default_factory=set)
    """Runs that had reported something different before, or in the same batch: the first report stays."""


@dataclass(slots=True, frozen=True)
class Held:
    """A run that a worker holds. `started`: its body has begun; the database may not know that yet."""

    task_id: int
    epoch: int
    started: bool = False
    log_path: str | None = None


class Stop(StrEnum):
    """The reason for stopping a run: its task was cancelled, or the worker no longer holds the claim."""

    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(slots=True)
class Orders:
    """The answer to a heartbeat."""

    alive: bool = True
    """False: the session is over, and with it all of its claims."""
    drain: bool = False
    """True: take no more work, finish the current runs, and exit."""
    stop: dict[tuple[int, int], Stop] = field(default_factory=dict)
    """Runs that no longer belong to this worker, by (task id, epoch)."""
