"""The environment of a run in a child process: standard streams, variables and signal handlers, restored after it.

`Growth` decides when a child has changed too much to be used again.
"""

from __future__ import annotations

import io
import logging
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import Any, TextIO

from aaiclick.config import settings
from aaiclick.orchestration.execution.runs.output_capture import FORMAT
from aaiclick.telemetry.log_lines import line_format

FDS_GROWN_MAX = 64
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LIMITS = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_STACK")
_SIGNALS = [number for number in range(1, 32) if number not in (signal.SIGKILL, signal.SIGSTOP)]


class Stdio:
    """Sets up the standard streams anew for each run, whatever the previous run did to them."""

    def __init__(self) -> None:
        self._handler: logging.StreamHandler[TextIO] = logging.StreamHandler(io.StringIO())
        self._handler.setFormatter(line_format(FORMAT, fields=False))
        self._streams: list[io.TextIOWrapper] = []
        logging.getLogger().setLevel(logging.INFO)
        self.park()

    def take(self, fd: int) -> None:
        """Direct stdout, stderr and log records to this descriptor."""
        _place(fd, 1, 2)
        sys.stdin = sys.__stdin__ = open(os.devnull, encoding="utf-8")  # type: ignore[misc]  # noqa: SIM115
        self._streams = [_writer(1), _writer(2)]
        sys.stdout, sys.stderr = self._streams
        sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc]
        self._handler.stream = self._streams[1]  # setStream() would flush the old one, which may be closed
        root = logging.getLogger()
        if not root.handlers:  # handlers that a body has installed are left alone
            root.addHandler(self._handler)

    def park(self) -> None:
        """Flush the streams, and replace the descriptor by /dev/null."""
        for stream in (sys.stdout, sys.stderr, *self._streams):
            _flush(stream)
        _place(os.open(os.devnull, os.O_RDWR), 0, 1, 2)


def _flush(stream: Any) -> bool:
    try:
        stream.flush()
    except Exception:  # it is closed, or None, or an object of the body's, which may raise anything
        return False
    return True


def _place(fd: int, *targets: int) -> None:
    for target in targets:
        if target != fd:
            os.dup2(fd, target)
    if fd in targets:
        os.set_inheritable(fd, True)
    else:
        os.close(fd)


def _writer(fd: int) -> io.TextIOWrapper:
    raw = io.FileIO(fd, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)


class ChildEnvironment:
    """A snapshot of variables, working directory and signal handlers before a body, which may change them."""

    __slots__ = ("cwd", "environ", "handlers", "mask")

    def __init__(self) -> None:
        self.environ = os.environ.copy()
        self.cwd = _cwd()
        self.handlers = [signal.getsignal(number) for number in _SIGNALS]
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())

    def restore(self) -> None:
        """Restore what differs from the snapshot, and cancel the real-time interval timer."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip(_SIGNALS, self.handlers, strict=True):
            if signal.getsignal(number) is not handler and handler is not None:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        if os.environ.copy() != self.environ:
            os.environ.clear()
            os.environ.update(self.environ)
        if self.cwd is not None and _cwd() != self.cwd:
            with suppress(OSError):  # the directory was deleted
                os.chdir(self.cwd)


def _cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


class Growth:
    """Measures how much a child has grown in memory and open files, and what else bodies have left behind."""

    def __init__(self) -> None:
        self._tasks = 0
        self._fds = _fd_count()
        self._limits = _limits()
        self._bytes: int | None = None

    def begin(self) -> None:
        """Count a run."""
        self._tasks += 1

    def imported(self) -> None:
        """Measure the memory before the first body, after the import of its module, which does not count as growth."""
        if self._bytes is None:
            self._bytes = _memory_bytes()

    def is_too_much(self) -> bool:
        """Return whether the child must be replaced before the next body.

        That is so if it has run many tasks, has grown, has other resource limits than at first, or has live children.
        """
        grown = 0 if self._bytes is None else _memory_bytes() - self._bytes
        return (
            self._tasks >= settings().child_tasks_max
            or grown > settings().child_growth_mb * 1_000_000
            or _fd_count() - self._fds > FDS_GROWN_MAX
            or _limits() != self._limits
            or _has_children()
        )


def _has_children() -> bool:
    """Return whether processes that a body started are still alive. Dead ones are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        return False
    return True


def _memory_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def _fd_count() -> int:
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return 0


def _limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(getattr(resource, name)) for name in _LIMITS if hasattr(resource, name)]
