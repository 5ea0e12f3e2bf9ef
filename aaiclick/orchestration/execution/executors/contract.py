"""The contract of executors, which run bodies: inline in the worker, or in child processes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.models import Claim, Report

Started = Callable[[str | None], None]
"""Called with the path of the run's log (None while it has none) once the body is about to begin."""


class Executor(Protocol):
    """Runs bodies, any number of them at a time."""

    services: RunServices | None
    """What runs must ask before they create tables; None if tables are not registered."""

    def watch(self, cutoff: Cutoff) -> None:
        """Enforce the cut-off, even while the worker's process or loop is paused. Call this before `start`.

        Bodies of claims without `stop_when_cut_off` go on.
        """

    async def start(self) -> None:
        """Do the slow preparations before the first claim."""

    def run(self, claim: Claim, started: Started) -> Coroutine[Any, Any, Report]:
        """Run one body to its end and return its report. Whatever the body does becomes a report.

        To stop it, cancel the coroutine: the body is asked to stop, then interrupted, then killed, as far as the
        executor can, and the coroutine ends with CancelledError when the body is dead.
        """

    def kill(self) -> None:
        """From now on, kill runs that are stopped without asking them first."""

    async def close(self) -> None:
        """Release everything. No run may be going on."""
