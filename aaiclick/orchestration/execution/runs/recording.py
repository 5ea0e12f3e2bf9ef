"""The worker's part of the log of a run, wherever the body runs: adding the reason of a failure, and closing it."""

from __future__ import annotations

from dataclasses import replace
from types import TracebackType
from typing import Self

from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs.failures import tell
from aaiclick.orchestration.execution.runs.run_scope import in_scope_of
from aaiclick.orchestration.models import Claim, Report


class recorded:
    """A context manager around a run: lines that are logged inside it carry the fields of the run.

    The log is closed on exit; `log` may be None. It is a class because each run enters one, and a coroutine around
    another costs more.
    """

    __slots__ = ("_log", "_scope")

    def __init__(self, claim: Claim, log: RunLog | None) -> None:
        self._log, self._scope = log, in_scope_of(claim)

    def __enter__(self) -> Self:
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.__exit__(kind, error, trace)
        if self._log is not None:
            self._log.close()

    def told(self, report: Report) -> Report:
        """Append the reason of a failure to the log and close it. Return the report, which names the log."""
        log = self._log
        if log is None:
            return report
        tell(log, report)
        log.close()  # before it is named: the end of the output may create it
        return report if log.path is None else replace(report, log_path=log.path)
