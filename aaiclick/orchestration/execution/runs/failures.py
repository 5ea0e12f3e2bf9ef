"""Turns an exception into a Failure: type, message and traceback, shortened and masked."""

from __future__ import annotations

import os
import traceback

import aaiclick
from aaiclick.errors import TaskSkipped, TaskTimeout
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.models import Claim, Failure, Report
from aaiclick.orchestration.rules.failed import failed_in
from aaiclick.orchestration.rules.validation import mask_secrets
from aaiclick.telemetry.masks import mask_text

TIMEOUT = f"{TaskTimeout.__module__}.{TaskTimeout.__qualname__}"

_LIBRARY = os.path.dirname(os.__file__)
_CALLERS = (
    os.path.join(os.path.dirname(aaiclick.__file__), ""),
    *(os.path.join(_LIBRARY, name) for name in ("asyncio", "concurrent", "importlib", "threading.py", "contextlib.py")),
    "<frozen importlib",
)
"""Files whose frames precede those of the user's code in a traceback."""

MESSAGE_MAX = 10_000
TRACEBACK_MAX = 50_000
TOLD_MAX = 5
"""The maximum number of failed inputs that are listed below a traceback."""


def failure_of(claim: Claim, error: BaseException, *, permanent: bool = False) -> Failure:
    """Return the report of a run that ended with this error. A permanent failure is not retried.

    TaskSkipped is none of the task: the report says that it is skipped.
    """
    if isinstance(error, TaskSkipped):
        return Failure(claim.task_id, claim.epoch, describe(error), skipped=True)
    kinds = tuple(f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return Failure(
        task_id=claim.task_id,
        epoch=claim.epoch,
        error=describe(error),
        traceback=_trace(error, claim),
        error_types=kinds,
        permanent=permanent,
    )


def tell(log: RunLog, report: Report) -> None:
    """Append the reason of a failure to the run's log: the traceback, and for a timeout or crash what ended it."""
    if not isinstance(report, Failure):
        return
    if report.traceback:
        log.tell(report.traceback)
    if report.crashed or TIMEOUT in report.error_types:
        log.note(report.error.partition(": ")[2])
    elif not report.traceback:
        log.note(report.error)


def describe(error: BaseException) -> str:
    """Return type and message of an error, storable; if its message cannot be read, the type and why."""
    try:
        said = str(error)
    except BaseException as second:  # str() is the user's code: it may raise anything
        said = f"(its message could not be read: {type(second).__name__})"
    text = f"{type(error).__qualname__}: {said}" if said else type(error).__qualname__
    return storable(text, MESSAGE_MAX)


def _trace(error: BaseException, claim: Claim) -> str:
    try:
        text = "".join(_without_callers(traceback.TracebackException.from_exception(error, compact=True)).format())
    except Exception as second:
        text = f"(the traceback could not be printed: {type(second).__name__})"
    for failed in failed_in(claim.inputs.values())[:TOLD_MAX]:  # they often cause the error of a body
        text += f"Its arguments contain the failure of task {failed.task_id}: {failed}\n"
    return storable(text, TRACEBACK_MAX)


def _without_callers(trace: traceback.TracebackException) -> traceback.TracebackException:
    """Remove the frames that called or imported the body. A trace that consists of these only is left whole."""
    left = [trace]
    while left:
        each = left.pop()
        begins = next((place for place, frame in enumerate(each.stack) if not _is_caller(frame.filename)), 0)
        del each.stack[:begins]
        left += [near for near in (each.__cause__, each.__context__, *(each.exceptions or ())) if near is not None]
    return trace


def _is_caller(file: str) -> bool:
    return file.startswith(_CALLERS)


def storable(text: str, limit: int) -> str:
    """Return text that every database accepts: at most about `limit` characters, cut in the middle, secrets masked.

    NUL and lone surrogates are escaped.
    """
    masked = mask_secrets(mask_text(_cut(text, 20 * limit)))  # before the final cut, which could halve a secret
    return _cut(masked, limit).replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - limit} characters left out …\n{text[-half:]}"
