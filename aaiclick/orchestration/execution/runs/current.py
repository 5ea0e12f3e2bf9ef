"""The run that the current code belongs to, and what a body may ask about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any

from aaiclick.errors import NoContext
from aaiclick.orchestration.coordinator.http.acting import Acting, find_runs_with
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.resources import given_to_body, visible_devices

if TYPE_CHECKING:
    from aaiclick.orchestration.execution.runs.run_services import RunServices


CUDA_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(slots=True, frozen=True)
class CurrentRun:
    """Describes the calling run. `idempotency_key` is the same for all attempts at the task, until it is cleared."""

    task_id: int
    job_id: int
    epoch: int
    attempt: int
    name: str
    idempotency_key: str
    log_path: str | None
    """The path of the run's log; None while it has none."""
    resources: Mapping[str, Any] = field(default_factory=dict)
    """What it was granted: `gpu` is the list of the indices of its GPUs, all else an amount."""


class Running:
    """A run that is going on in this process."""

    __slots__ = ("asked_to_stop", "claim", "key", "services", "echoes", "log", "log_path", "poll", "thread")

    def __init__(
        self, claim: Claim, log: RunLog | None = None, log_path: str | None = None, *, echoes: bool = False
    ) -> None:
        self.claim, self.log, self.log_path = claim, log, log_path
        self.echoes = echoes
        """Whether its output goes to the original streams as well as to its log."""
        self.asked_to_stop = False
        self.key: str | None = None
        """The text of the task's own idempotency key, once it is known."""
        self.services: RunServices | None = None
        self.thread: Thread | None = None
        """The thread on which a plain function runs, if it runs in the worker itself."""
        self.poll: Callable[[], bool] | None = None
        """Checks whether the run was asked to stop. If None, the requester sets `asked_to_stop` directly."""

    @property
    def goes_on(self) -> bool:
        """Whether its body may still be running: on a thread until that has ended, else until it is asked to stop."""
        return not self.asked_to_stop if self.thread is None else self.thread.is_alive()


RUNNING: ContextVar[Running | None] = ContextVar("running", default=None)


class going_on:
    """A context manager: code inside it, and asyncio tasks started inside it, belong to the run.

    On exit the run is marked as asked to stop, for tasks and threads that outlive it. It is a class because each run
    enters one, and a generator-based context manager costs twice as much.
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
    """Assign all threads of this process to one run; None for no run."""
    _of_this_process[:] = [] if running is None else [running]


def _acting() -> Acting | None:
    running = _find()
    return None if running is None else (running.claim.worker_id, running.claim.task_id, running.claim.epoch)


find_runs_with(_acting)


def get_current_run() -> CurrentRun:
    """Return the run that the calling code belongs to. Raises NoContext outside of a run."""
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
        idempotency_key=running.key or claim.idempotency_key,
        log_path=running.log.path if running.log else running.log_path,
        resources=given_to_body(claim.grants),
    )


def granted_environment() -> dict[str, str]:
    """Return the environment variables by which programs learn which GPUs this run was granted; {} if none."""
    running = _find()
    devices = None if running is None else visible_devices(running.claim.grants)
    return {} if devices is None else {CUDA_VISIBLE_DEVICES: devices}


def name_key(text: str) -> None:
    """Make this the idempotency key of the run that the calling code belongs to."""
    running = _find()
    if running is not None:
        running.key = text


def cancel_requested() -> bool:
    """Return whether this run should end. A long-running body calls this now and then, and returns if it is True."""
    running = _find()
    if running is None:
        return False
    if not running.asked_to_stop and running.poll is not None:
        running.asked_to_stop = running.poll()
    return running.asked_to_stop


def current_services() -> RunServices | None:
    """Return the services that this run must ask before it creates tables; None if tables are not registered."""
    running = _find()
    return None if running is None else running.services


async def find_callback(digest: str = "") -> str | None:
    """Accept callbacks with the token of this digest, if there is one; return what has been called back, or None.

    It counts for all attempts at the task, until it is cleared. Raises NoContext outside of a run.
    """
    running = _find()
    if running is None or running.services is None:
        raise NoContext(call="A callback", hint="It is waited for by the body of a task, which a worker runs.")
    return await running.services.callback(running.claim, digest)


def _find() -> Running | None:
    return RUNNING.get() or (_of_this_process[0] if _of_this_process else None)
