"""From an exception to what is stored of it: type, message and traceback, cut and masked."""

from __future__ import annotations

import os
import traceback

import aaiclick
from aaiclick.errors import TaskTimeout
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
"""Whose frames stand in a traceback before those of the user's code."""

MESSAGE_MAX = 10_000
TRACEBACK_MAX = 50_000
TOLD_MAX = 5
"""How many failures among the arguments are told with a traceback."""


def failure_of(claim: Claim, error: BaseException, *, permanent: bool = False) -> Failure:
    """The report of a run that ended with this error."""
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
    """End the log of a run that failed with why: where it was, and what ended it from outside."""
    if not isinstance(report, Failure):
        return
    if report.traceback:
        log.tell(report.traceback)
    if report.crashed or TIMEOUT in report.error_types:
        log.note(report.error.partition(": ")[2])
    elif not report.traceback:
        log.note(report.error)


def describe(error: BaseException) -> str:
    """Type and message in a line or more; an error that cannot even say what it is keeps its type."""
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
    for failed in failed_in(claim.inputs.values())[:TOLD_MAX]:  # a body that does not expect them stumbles over them
        text += f"Its arguments hold what task {failed.task_id} failed with: {failed}\n"
    return storable(text, TRACEBACK_MAX)


def _without_callers(trace: traceback.TracebackException) -> traceback.TracebackException:
    """The same without what called the body, or imported it; a trace that has nothing else stays whole."""
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
    """Text that every database takes: cut in the middle, secrets masked, no NUL, no lone surrogate."""
    masked = mask_secrets(mask_text(_cut(text, 20 * limit)))  # before the cut that counts, which could halve a secret
    return _cut(masked, limit).replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - limit} characters left out …\n{text[-half:]}"
