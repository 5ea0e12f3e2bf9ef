"""Workers: registering them, renewing and ending their sessions, draining, listing, and claiming a task by hand."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence

from aaiclick.errors import Conflict, InputError, NotFound
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.models import Claim, Worker, WorkerStatus
from aaiclick.orchestration.models.node_info import NodeDescription
from aaiclick.orchestration.rules.validation import check_id, check_name, check_paging, check_status, shorten
from aaiclick.orchestration.store import workers as store
from aaiclick.orchestration.store.reading import health


async def register_worker(
    hostname: str | None = None,
    pid: int | None = None,
    name: str | None = None,
    *,
    node: NodeDescription | None = None,
) -> Worker:
    """Register a worker and begin its session; without arguments, for this process. `node` describes its machine."""
    host = check_name(socket.gethostname() if hostname is None else hostname, "hostname")
    process = _check_pid(os.getpid() if pid is None else pid)
    label = None if name is None else check_name(name, "Worker name")
    async with coordinated() as coordinator:
        return await coordinator.register(hostname=host, pid=process, name=label, node=node)


def _check_pid(pid: object) -> int:
    if type(pid) is not int or not 0 < pid < 2**31:
        raise InputError(
            field="pid", value=shorten(pid), rule="it must be a whole number from 1 to 2147483647", hint=""
        )
    return pid


async def worker_heartbeat(worker_id: int) -> bool:
    """Renew a worker's session; return False if it is over."""
    wanted = check_id(worker_id, "worker id")
    async with coordinated() as coordinator:
        alive = (await coordinator.beat(wanted)).alive
        await coordinator.grant_ids()  # a process without a service thread has nothing else that asks for ids in time
        return alive


async def deregister_worker(worker_id: int) -> bool:
    """End a worker's session; return False if it was over."""
    wanted = check_id(worker_id, "worker id")
    async with coordinated() as coordinator:
        return await coordinator.deregister(wanted)


async def drain_worker(worker_id: int) -> bool:
    """Ask a worker to finish its runs and exit; return False if its session is over already."""
    wanted = check_id(worker_id, "worker id")
    async with connected() as database:
        before = await database.transact(lambda session: store.drain_worker(session, wanted))
    if before is None:
        raise NotFound(what="worker", field="id", value=wanted, hint="See: aaiclick worker list")
    return before != WorkerStatus.STOPPED


async def list_workers(
    status: WorkerStatus | str | None = None, limit: int | None = None, *, before: int | None = None
) -> Sequence[Worker]:
    """Return workers, newest first, including those whose session is over.

    `before` is the id of the last worker of the previous page.
    """
    wanted = None if status is None else check_status(status, WorkerStatus)
    count, _ = check_paging(limit, None)
    below = None if before is None else check_id(before, "before")
    async with connected() as database:
        return await database.read(lambda session: store.list_workers(session, wanted, count, below))


async def count_live_workers() -> int:
    """Return the number of workers whose session is not over by the database's clock."""
    async with connected() as database:
        return await database.read(health.count_live_workers)


async def get_worker(worker_id: int) -> Worker | None:
    """Return the worker as it is now; None if there is none with this id."""
    wanted = check_id(worker_id, "worker id")
    async with connected() as database:
        return await database.read(lambda session: store.get_worker(session, wanted))


async def claim_next_task(worker_id: int) -> Claim | None:
    """Claim the next ready task, and renew the worker's session; return None if no task is ready.

    Raise Conflict if the worker has no live session: nobody would run the task.
    """
    wanted = check_id(worker_id, "worker id")
    async with coordinated() as coordinator:
        if not (await coordinator.beat(wanted)).alive:
            cause = "it has no session, or its session is over"
            raise Conflict(what=f"Worker {wanted}", verb="given a task", cause=cause, hint="Call register_worker().")
        claims = await coordinator.claim(wanted, limit=1, begins=1, lanes=None)
    return claims[0] if claims else None
