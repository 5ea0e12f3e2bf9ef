"""Captures what bodies print in the logs of their runs, while several run in one process (pitfall T28).

sys.stdout and sys.stderr are replaced by streams that look up which run is writing. Outside of runs they pass output
on to the original streams. A run that prints nothing costs nothing.
"""

from __future__ import annotations

import io
import logging
import sys
from typing import TextIO

from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs.current import RUNNING
from aaiclick.telemetry.log_lines import line_format
from aaiclick.telemetry.masks import mask_bytes, mask_text

FORMAT = "%(levelname)s %(name)s: %(message)s"


_users = 0


def install() -> None:
    """Install the streams and a logging handler. Each call needs a matching `remove`."""
    global _users
    _users += 1
    if _users == 1:
        _handler.setFormatter(line_format(FORMAT, fields=False))
        logging.getLogger().addHandler(_handler)
    ensure()


def ensure() -> None:
    """Install the streams again if other code has replaced them."""
    if type(sys.stdout) is not RunStream:
        sys.stdout = RunStream(sys.stdout)
    if type(sys.stderr) is not RunStream:
        sys.stderr = RunStream(sys.stderr)


def remove() -> None:
    """Restore the original streams, once this was called as often as `install`."""
    global _users
    _users -= 1
    if _users:
        return
    if isinstance(sys.stdout, RunStream):
        sys.stdout = sys.stdout.real
    if isinstance(sys.stderr, RunStream):
        sys.stderr = sys.stderr.real
    logging.getLogger().removeHandler(_handler)


def _log() -> RunLog | None:
    running = RUNNING.get()
    return None if running is None else running.log


def _is_hidden() -> bool:
    """Return whether output of the current context goes only to the log of a run."""
    running = RUNNING.get()
    return running is not None and running.log is not None and not running.echoes


class RunStream(io.TextIOBase):
    """A text stream that writes to the log of the current run, or to the original stream outside of runs."""

    def __init__(self, real: TextIO | None) -> None:
        self.real = real
        self._bytes = _RunBytes(self)

    def write(self, text: str, /) -> int:
        """Write without buffering."""
        log = _log()
        if log is not None:
            log.write(text.encode("utf-8", "backslashreplace"))
        if self.real is not None and not _is_hidden():
            self.real.write(mask_text(text))  # masked: a thread that a body started is outside of its run
        return len(text)

    def flush(self) -> None:
        """Flush the original stream; logs are not buffered."""
        if self.real is not None and not _is_hidden():
            self.real.flush()

    def isatty(self) -> bool:
        """Return False inside a run that does not echo, since its log is not a terminal."""
        return self.real is not None and not _is_hidden() and self.real.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the original stream. What is written to it directly is not captured."""
        if self.real is None:
            raise io.UnsupportedOperation("fileno")
        return self.real.fileno()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing: other code writes to the same stream."""

    @property
    def buffer(self) -> _RunBytes:
        """The binary stream, as `sys.stdout.buffer`."""
        return self._bytes

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8" if self.real is None or _is_hidden() else self.real.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return "backslashreplace" if self.real is None or _is_hidden() else self.real.errors


class _RunBytes(io.RawIOBase):
    """A binary stream that writes to the log of the current run, or to the original stream outside of runs."""

    def __init__(self, text: RunStream) -> None:
        self._text = text

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        log, real = _log(), self._text.real
        if log is not None:
            log.write(bytes(data))
        if real is not None and not _is_hidden():
            real.buffer.write(mask_bytes(bytes(data)))
        return len(memoryview(data).cast("B"))

    def flush(self) -> None:
        self._text.flush()

    def fileno(self) -> int:
        return self._text.fileno()

    def isatty(self) -> bool:
        return self._text.isatty()

    def writable(self) -> bool:
        return True

    def close(self) -> None: ...


class _RunHandler(logging.Handler):
    """Writes log records of a run to its log, in addition to the user's own handlers.

    If this is the only handler of the root logger, records are also printed where they are not hidden, as
    `logging.lastResort` would: it would be in use if this handler were not installed.
    """

    def emit(self, record: logging.LogRecord) -> None:
        log = _log()
        if log is not None:
            log.write((self.format(record) + "\n").encode("utf-8", "backslashreplace"))
        last = logging.lastResort
        if _is_hidden() or last is None or record.levelno < last.level or logging.getLogger().handlers != [self]:
            return
        if log is None:
            last.handle(record)
        elif isinstance(sys.stderr, RunStream) and sys.stderr.real is not None:  # not through sys.stderr: it is logged
            sys.stderr.real.write(mask_text(last.format(record)) + "\n")


_handler = _RunHandler()
