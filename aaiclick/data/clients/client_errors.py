"""Translate errors of ClickHouse, of its driver and of the network into errors of aaiclick."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from aaiclick.data.arithmetic.overflow import BEYOND, CHECKED, NARROWED, TOLD
from aaiclick.errors import AaiclickError, DataRefused, DataUnreachable, ObjectNotFound, StaleObject
from aaiclick.telemetry.masks import mask_text

_CODE = re.compile(r"[Cc]ode:\s*(\d+)")
_NOISE = re.compile(r"^(?:.*?Code: \d+\. DB::Exception:\s*)+", re.DOTALL)
_VERSION = re.compile(r"\s*\(version [^)]*\)\s*")
_UNKNOWN_TABLE = "60"
_REFUSED_BY_US = "395"
"""The code of errors that our own queries throw."""

_NAMED = re.compile(r"['`.]((?:p|j\d+)_[A-Za-z0-9_.-]+(?:@\d+)?)['`]", re.ASCII)
_OPEN_ANEW = "It was deleted, or newer versions replaced it: open the Object again."
_OF_A_RUN = re.compile(r"\bt\d+_\d+_\d+\b", re.ASCII)
_TEMPORARY = re.compile(r"\bc\d+_\d+\b")
MESSAGE_MAX = 2_000
_THEIRS = ("clickhouse_connect", "chdb", "urllib3", "builtins")


class NotTaken(ConnectionError):
    """The other side closed before it had read all that was sent."""


Got = Literal["unsent", "unseen"]
"""How far a statement got, as a fact of DataUnreachable where it is known.

`unsent`: it did not arrive, and nothing was done. `unseen`: it was done, and the query about what it made failed.
"""


def is_unsent(error: BaseException) -> bool:
    return isinstance(error, DataUnreachable) and error.facts.get("got") == "unsent"


def is_unseen(error: BaseException) -> bool:
    return isinstance(error, DataUnreachable) and error.facts.get("got") == "unseen"


@contextmanager
def in_our_words() -> Iterator[None]:
    """Raise errors of the engine, the driver and the network as errors of aaiclick; other errors pass unchanged."""
    try:
        yield
    except AaiclickError:
        raise
    except (ConnectionError, TimeoutError, EOFError) as error:
        raise _unreachable(error) from error
    except Exception as error:
        if (type(error).__module__ or "").partition(".")[0] not in _THEIRS or isinstance(error, OSError):
            raise  # of other code, or about a file of this machine
        code = _CODE.search(str(error))
        if code and code[1] == _UNKNOWN_TABLE and (table := _TEMPORARY.search(str(error))):
            raise StaleObject(what=f"The table {table[0]}") from error
        if code and code[1] == _UNKNOWN_TABLE and (table := _NAMED.search(str(error))):
            raise ObjectNotFound(name=table[1], hint=_OPEN_ANEW) from error
        if code and code[1] == _UNKNOWN_TABLE and (table := _OF_A_RUN.search(str(error))):
            raise ObjectNotFound(name=table[0], hint="Its table is gone.") from error
        if code is None and _is_network(error):
            raise _unreachable(error) from error
        if code is None and type(error).__module__ == "builtins" and not isinstance(error, RuntimeError):
            raise
        cause = _line(error)
        if beyond := CHECKED.search(cause):
            cause = BEYOND.format(TOLD[beyond[1]])
        elif NARROWED.search(cause):
            cause = BEYOND.format("a number")
        if code and code[1] == _REFUSED_BY_US:
            cause = cause.partition(": while executing")[0]  # the executed expression is long, and says nothing more
        raise DataRefused(code=int(code[1]) if code else 0, cause=cause) from error


@contextmanager
def unreachable_is(got: Got) -> Iterator[None]:
    """Mark each DataUnreachable that is raised inside with how far the statement got."""
    try:
        with in_our_words():
            yield
    except DataUnreachable as error:
        raise DataUnreachable(**{**error.facts, "got": got}) from error


def _unreachable(error: BaseException) -> DataUnreachable:
    nothing_sent = any(isinstance(step, NotTaken | ConnectionRefusedError) or _is_new(step) for step in _steps(error))
    facts = {"got": "unsent"} if nothing_sent else {}
    return DataUnreachable(cause=_line(error), **facts)


def _is_new(error: BaseException) -> bool:
    """Return whether the error is urllib3's NewConnectionError, without importing urllib3 for that."""
    return type(error).__name__ == "NewConnectionError"


def _is_network(error: BaseException) -> bool:
    return any(
        (type(step).__module__ or "").startswith("urllib3") or isinstance(step, OSError) for step in _steps(error)
    )


def _steps(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes; urllib3 keeps some of these in `reason`."""
    step: BaseException | None = error
    while step is not None:
        yield step
        reason = getattr(step, "reason", None)
        step = step.__cause__ or step.__context__ or (reason if isinstance(reason, BaseException) else None)


def _line(error: BaseException) -> str:
    said = mask_text(str(error))  # ClickHouse quotes the statement; masked before it is cut
    told = _VERSION.sub("", _NOISE.sub("", said)).strip() or type(error).__name__
    line = " ".join(told.split()).rstrip(". ")
    return line if len(line) <= MESSAGE_MAX else line[:MESSAGE_MAX] + "…"
