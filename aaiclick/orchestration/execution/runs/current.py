"""What a body may ask about its own run."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING

from aaiclick.errors import NoContext
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.models import Claim

if TYPE_CHECKING:
    from aaiclick.orchestration.execution.runs.run_services import RunServices


@dataclass(slots=True, frozen=True)
class CurrentRun:
    """The run that asks. `idempotency_key` is the same for every attempt at the task until someone clears it."""

    task_id: int
    job_id: int
    epoch: int
    attempt: int
    name: str
    idempotency_key: str
    log_path: str | None
    """Where the run's log is; None while it has none."""


class Running:
    """A run that is going on in this process."""

    __slots__ = ("asked_to_stop", "claim", "services", "echoes", "log", "log_path", "poll", "thread")

    def __init__(
        self, claim: Claim, log: RunLog | None = None, log_path: str | None = None, *, echoes: bool = False
    ) -> None:
        self.claim, self.log, self.log_path = claim, log, log_path
        self.echoes = echoes
        """Whether what it prints goes to its log and also where it always goes."""
        self.asked_to_stop = False
        self.services: RunServices | None = None
        self.thread: Thread | None = None
        """On which a plain function runs, in the worker itself."""
        self.poll: Callable[[], bool] | None = None
        """Looks whether someone asked meanwhile; without it, whoever asks sets `asked_to_stop`."""

    @property
    def goes_on(self) -> bool:
        """Whether its body may still do something: until it is told to stop; on a thread, until that has ended."""
        return not self.asked_to_stop if self.thread is None else self.thread.is_alive()


RUNNING: ContextVar[Running | None] = ContextVar("running", default=None)


class going_on:
    """While this lasts, what runs here is part of a run; whatever of it goes on afterwards is on its own.

    A class, since each run is inside of one: a generator costs twice as much.
    """

    __slots__ = ("_running", "_token")

    def __init__(self, running: Running) -> None:
        self._running = running

    def __enter__(self) -> None:
        self._token = RUNNING.set(self._running)

    def __exit__(self, *error: object) -> None:
        RUNNING.reset(self._token)
        self._running.asked_to_stop = True


_of_this_process: list[Running] = []


def occupy(running: Running | None) -> None:
    """Say that this whole process, all its threads, does nothing but this run."""
    _of_this_process[:] = [] if running is None else [running]


def get_current_run() -> CurrentRun:
    """The run that this code is part of."""
    running = _find()
    if running is None:
        raise NoContext(call="get_current_run()", hint="Call it in the body of a task.")
    claim = running.claim
    return CurrentRun(
        task_id=claim.task_id,
        job_id=claim.job_id,
        epoch=claim.epoch,
        attempt=claim.attempt,
        name=claim.name,
        idempotency_key=claim.idempotency_key,
        log_path=running.log.path if running.log else running.log_path,
    )


def cancel_requested() -> bool:
    """Whether this run should end: a body that takes long asks now and then, and returns."""
    running = _find()
    if running is None:
        return False
    if not running.asked_to_stop and running.poll is not None:
        running.asked_to_stop = running.poll()
    return running.asked_to_stop


def current_services() -> RunServices | None:
    """Where this run asks before it touches tables; None where nobody keeps account."""
    running = _find()
    return None if running is None else running.services


def _find() -> Running | None:
    return RUNNING.get() or (_of_this_process[0] if _of_this_process else None)
