"""What ClickHouse and the way to it say, in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from aaiclick.errors import AaiclickError, DataRefused, DataUnreachable, StaleObject
from aaiclick.telemetry.masks import mask_text

_CODE = re.compile(r"[Cc]ode:\s*(\d+)")
_NOISE = re.compile(r"^(?:.*?Code: \d+\. DB::Exception:\s*)+", re.DOTALL)
_VERSION = re.compile(r"\s*\(version [^)]*\)\s*")
_UNKNOWN_TABLE = "60"
_REFUSED_BY_US = "395"
"""The code of what our own queries throw."""

_TEMPORARY = re.compile(r"\bc\d+_\d+\b")
MESSAGE_MAX = 2_000
_THEIRS = ("clickhouse_connect", "chdb", "urllib3", "builtins")


@contextmanager
def in_our_words() -> Iterator[None]:
    """Errors of the engine, of the client library and of the network, as ours."""
    try:
        yield
    except AaiclickError:
        raise
    except (ConnectionError, TimeoutError, EOFError) as error:
        raise DataUnreachable(cause=_line(error)) from error
    except Exception as error:
        if (type(error).__module__ or "").partition(".")[0] not in _THEIRS or isinstance(error, OSError):
            raise  # not theirs, or a file of this machine
        code = _CODE.search(str(error))
        if code and code[1] == _UNKNOWN_TABLE and (table := _TEMPORARY.search(str(error))):
            raise StaleObject(what=f"The table {table[0]}") from error
        if code is None and _is_network(error):
            raise DataUnreachable(cause=_line(error)) from error
        if code is None and type(error).__module__ == "builtins" and not isinstance(error, RuntimeError):
            raise
        cause = _line(error)
        if code and code[1] == _REFUSED_BY_US:
            cause = cause.partition(": while executing")[0]  # what was executed is long, and says nothing more
        raise DataRefused(code=int(code[1]) if code else 0, cause=cause) from error


def _is_network(error: BaseException) -> bool:
    step: BaseException | None = error
    while step is not None:
        if (type(step).__module__ or "").startswith("urllib3") or isinstance(step, OSError):
            return True
        step = step.__cause__ or step.__context__
    return False


def _line(error: BaseException) -> str:
    said = mask_text(str(error))  # ClickHouse quotes the statement; before it is cut
    told = _VERSION.sub("", _NOISE.sub("", said)).strip() or type(error).__name__
    line = " ".join(told.split()).rstrip(". ")
    return line if len(line) <= MESSAGE_MAX else line[:MESSAGE_MAX] + "…"
