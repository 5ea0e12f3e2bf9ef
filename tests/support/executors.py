"""What tests ask of a process executor."""

from __future__ import annotations

from collections.abc import Callable

from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.models import Claim, Report
from tests.support import hostile
from tests.support.bodies import claim_of, result_in

Settings = Callable[..., None]


async def run(executor: ProcessExecutor, claim: Claim) -> Report:
    return await executor.run(claim, lambda path: None)


async def child_of(executor: ProcessExecutor) -> int:
    """The process that runs the next body."""
    (pid, in_main_thread, leads_session) = result_in(await run(executor, claim_of(hostile.who)))
    assert in_main_thread
    assert leads_session
    return int(pid)


def nursery_of(executor: ProcessExecutor) -> int:
    assert executor._nursery is not None
    return executor._nursery.pid
