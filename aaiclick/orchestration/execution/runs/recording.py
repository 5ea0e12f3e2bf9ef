"""The worker's part of the log of a run, wherever the body runs: adding the reason of a failure, and closing it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs.failures import tell
from aaiclick.orchestration.execution.runs.run_scope import in_scope_of
from aaiclick.orchestration.models import Claim, Report


async def recorded(claim: Claim, log: RunLog | None, run: Callable[[], Awaitable[Report]]) -> Report:
    """Await a run and return its report, which names the log. The reason of a failure is appended to the log.

    Lines that are logged meanwhile carry the fields of the run. The log is closed at the end. `log` may be None.
    """
    if log is None:
        with in_scope_of(claim):
            return await run()
    try:
        with in_scope_of(claim):
            report = await run()
            tell(log, report)
    finally:
        log.close()
    return report if log.path is None else replace(report, log_path=log.path)
