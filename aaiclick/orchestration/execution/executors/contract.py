"""Where bodies run. One contract: inline in the worker, or in child processes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.runs.run_services import RunServices
from aaiclick.orchestration.models import Claim, Report

Started = Callable[[str | None], None]
"""Called with the path of the run's log (None while it has none) once the body is about to begin."""


class Executor(Protocol):
    """Runs bodies, as many at a time as it is asked to."""

    services: RunServices | None
    """Where runs ask before they touch tables; None where nobody keeps account."""

    def watch(self, cutoff: Cutoff) -> None:
        """See to it that no body is alive when this says so, even if whoever said it is paused; before `start`.

        Bodies of claims that are not to `stop_when_cut_off` go on.
        """

    async def start(self) -> None:
        """Get ready: whatever is slow and can be done before the first claim."""

    def run(self, claim: Claim, started: Started) -> Coroutine[Any, Any, Report]:
        """Run one body to its end and say what it came to: whatever the body does becomes a report.

        To stop it, cancel the coroutine: the body is asked, then told, then killed, and the coroutine ends (with
        CancelledError) when the body is dead.
        """

    def kill(self) -> None:
        """From now on, runs that are stopped are killed without being asked."""

    async def close(self) -> None:
        """Give everything back. No run is going on any more."""
