"""What a body prints goes to its run's log, also while others print (pitfall T28).

sys.stdout and sys.stderr are replaced by streams that look which run is writing; outside of runs everything goes where
it always went. A run that prints nothing pays nothing.
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
    """Put the streams and a logging handler in place; to be removed as often."""
    global _users
    _users += 1
    if _users == 1:
        _handler.setFormatter(line_format(FORMAT, fields=False))
        logging.getLogger().addHandler(_handler)
    ensure()


def ensure() -> None:
    """Put the streams in place again, if someone has replaced them meanwhile."""
    if type(sys.stdout) is not RunStream:
        sys.stdout = RunStream(sys.stdout)
    if type(sys.stderr) is not RunStream:
        sys.stderr = RunStream(sys.stderr)


def remove() -> None:
    """Put back what was there."""
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
    """Whether what is printed here goes to a run's log alone."""
    running = RUNNING.get()
    return running is not None and running.log is not None and not running.echoes


class RunStream(io.TextIOBase):
    """Text for the log of the run that writes, or for the stream that was there before."""

    def __init__(self, real: TextIO | None) -> None:
        self.real = real
        self._bytes = _RunBytes(self)

    def write(self, text: str, /) -> int:
        """Write to the run's log, at once."""
        log = _log()
        if log is not None:
            log.write(text.encode("utf-8", "backslashreplace"))
        if self.real is not None and not _is_hidden():
            self.real.write(mask_text(text))  # a thread that a body began is outside of its run
        return len(text)

    def flush(self) -> None:
        """Nothing waits in a log."""
        if self.real is not None and not _is_hidden():
            self.real.flush()

    def isatty(self) -> bool:
        """A log is no terminal."""
        return self.real is not None and not _is_hidden() and self.real.isatty()

    def fileno(self) -> int:
        """The real one: what is written to it directly is not captured."""
        if self.real is None:
            raise io.UnsupportedOperation("fileno")
        return self.real.fileno()

    def writable(self) -> bool:
        """It is."""
        return True

    def close(self) -> None:
        """It stays open: others write too."""

    @property
    def buffer(self) -> _RunBytes:
        """The stream for bytes."""
        return self._bytes

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """How text becomes bytes."""
        return "utf-8" if self.real is None or _is_hidden() else self.real.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """What becomes of text that cannot be encoded."""
        return "backslashreplace" if self.real is None or _is_hidden() else self.real.errors


class _RunBytes(io.RawIOBase):
    """Bytes for the log of the run that writes, or for the stream that was there before."""

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
    """Records of a run go to its log, beside wherever the user's own handlers send them."""

    def emit(self, record: logging.LogRecord) -> None:
        log = _log()
        if log is not None:
            log.write((self.format(record) + "\n").encode("utf-8", "backslashreplace"))
        last = logging.lastResort  # what logging would have used, were we not there
        if _is_hidden() or last is None or record.levelno < last.level or logging.getLogger().handlers != [self]:
            return
        if log is None:
            last.handle(record)
        elif isinstance(sys.stderr, RunStream) and sys.stderr.real is not None:  # the log has it already
            sys.stderr.real.write(mask_text(last.format(record)) + "\n")


_handler = _RunHandler()
