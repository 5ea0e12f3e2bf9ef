"""`job_test` runs a job in the calling process, through the same coordinator and runner that workers use."""

from __future__ import annotations

import asyncio
import os
import pdb  # noqa: T100 (this is where people ask for it)
import socket
import sys
from functools import partial
from typing import Any, overload

from aaiclick.backoff import Backoff
from aaiclick.data.clients.opening import kept_open
from aaiclick.errors import AaiclickError, InputError, NotFound
from aaiclick.orchestration.blocking import refuse_running_loop
from aaiclick.orchestration.checks import refuse_during_import
from aaiclick.orchestration.connections import connected, coordinated
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.coordinator.contract import JobCoordinator
from aaiclick.orchestration.decorators import JobFactory
from aaiclick.orchestration.execution.job_loop import JobLoop
from aaiclick.orchestration.execution.logs.shipping import shipping
from aaiclick.orchestration.execution.progress_line import ProgressLine
from aaiclick.orchestration.execution.runs.failures import describe
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.factories import submit_job
from aaiclick.orchestration.launchers.log_sending import log_target
from aaiclick.orchestration.launchers.service_thread import Service
from aaiclick.orchestration.models import Claim, Job
from aaiclick.orchestration.rules.naming.script_names import running_here
from aaiclick.orchestration.rules.type_variables import P, R
from aaiclick.orchestration.rules.validation import shorten
from aaiclick.orchestration.submitting.entrypoints import bind

CONCURRENCY = 8


@overload
def job_test(job: Job[R], /, *, debugger: bool = False) -> Job[R]: ...
@overload
def job_test(job: JobFactory[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
@overload  # no parameter may stand between P.args and P.kwargs: with this option, arguments are not type-checked
def job_test(job: JobFactory[..., R], /, *args: Any, debugger: bool, **kwargs: Any) -> Job[R]: ...
def job_test(job: Any, /, *args: Any, debugger: Any = False, **kwargs: Any) -> Job:
    """Run a job to its end in this process and return it; a failed job is returned too, not raised.

    `job_test(pipeline(x=3))` or `job_test(pipeline, x=3)`. If a Job is passed, that object is updated and returned. No
    worker claims the job's tasks meanwhile. With `debugger=True` tasks run one at a time, and an exception in one opens
    a debugger at the place where it was raised.
    """
    refuse_during_import("job_test(…)")
    refuse_running_loop("job_test(…)", "await ajob_test(…)")
    return asyncio.run(ajob_test(job, *args, debugger=debugger, **kwargs))


@overload
async def ajob_test(job: Job[R], /, *, debugger: bool = False) -> Job[R]: ...
@overload
async def ajob_test(job: JobFactory[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
@overload
async def ajob_test(job: JobFactory[..., R], /, *args: Any, debugger: bool, **kwargs: Any) -> Job[R]: ...
async def ajob_test(job: Any, /, *args: Any, debugger: Any = False, **kwargs: Any) -> Job:
    """Run a job to its end in this process, like `job_test`, from a coroutine."""
    refuse_during_import("ajob_test(…)")
    async with coordinated() as coordinator:
        with running_here():
            return await _test(coordinator, job, args, kwargs, debugger)


async def _test(
    coordinator: JobCoordinator, job: Job | JobFactory, args: Any, kwargs: dict[str, object], debugger: bool
) -> Job:
    host, pid, slots = socket.gethostname(), os.getpid(), 0  # no slots: it claims only the tasks of its own job
    worker = await coordinator.register(hostname=host, pid=pid, name="job_test", concurrency=slots)
    try:
        job_id = await _reserve(coordinator, worker.id, job, args, kwargs)
        async with kept_open(), shipping(log_target()):
            ended = await _run(coordinator, worker.id, job_id, debugger)
            async with connected() as database:
                with Backoff().told("dropping tables", "the leader drops them later", of=AaiclickError):
                    await TableDropper(database).drop_unneeded()
        return job.update(ended) if isinstance(job, Job) else ended
    finally:
        await coordinator.deregister(worker.id)


async def _reserve(
    coordinator: JobCoordinator, worker_id: int, job: Job | JobFactory, args: Any, kwargs: dict[str, object]
) -> int:
    """Submit the job, or find it if it is stored, and reserve its tasks for this worker. Return the job's id."""
    if isinstance(job, JobFactory):
        made, nodes = await job.build(bind(job.function, args, kwargs), reserved_for=worker_id)
        stored = await submit_job(made, nodes, whole=True)
        if stored.id != made.id:
            await coordinator.reserve(stored.id, worker_id)
        return stored.id
    if not isinstance(job, Job):
        raise InputError(
            field="job_test", value=shorten(job), rule="it must be a Job, or a function marked @job", hint=""
        )
    if args or kwargs:
        raise InputError(
            field="job_test",
            value=f"arguments for {job.name!r}",
            rule="the job was submitted with its own arguments",
            hint="",
        )
    if await coordinator.job(job.id) is None:
        raise NotFound(what="job", field="id", value=job.id, hint="Was it submitted to this database?")
    await coordinator.reserve(job.id, worker_id)
    return job.id


async def _run(coordinator: JobCoordinator, worker_id: int, job_id: int, debugger: bool) -> Job:
    run = partial(run_claim, threads=not debugger, watcher=_post_mortem if debugger else None)
    loop = JobLoop(
        coordinator,
        run,
        worker_id=worker_id,
        job_id=job_id,
        concurrency=1 if debugger else CONCURRENCY,
        seen=ProgressLine(),
        logs=not debugger,
    )
    try:
        async with Service(loop.worker, control=False):
            return await loop.until_ended()
    except BaseException:  # the job stays reserved for this worker, so no other would ever run it: cancel it
        await asyncio.shield(coordinator.cancel(job_id))
        raise


def _post_mortem(claim: Claim, error: BaseException) -> None:
    sys.stderr.write(f"\n{claim.name} (task {claim.task_id}) raised {describe(error)}\n")
    pdb.post_mortem(error.__traceback__)
