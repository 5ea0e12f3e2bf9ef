"""The worker's account of one run, whoever runs its body: a log from the first line to what ended it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs.failures import tell
from aaiclick.orchestration.execution.runs.run_scope import in_scope_of
from aaiclick.orchestration.models import Claim, Report


async def recorded(claim: Claim, log: RunLog | None, run: Callable[[], Awaitable[Report]]) -> Report:
    """Return what a run comes to: its log ends with why it failed, is closed, and is named in the report.

    Without a log, nothing but the run's fields on what is logged meanwhile.
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
