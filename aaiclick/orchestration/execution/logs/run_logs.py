"""One log for each run: `{task_id}.{epoch}.log`; `{task_id}.log` is the newest attempt.

Names are made of integers only, and no link is followed. `{task_id}.log` is a hard link, so that whoever refuses
symbolic links can read it, and it outlives the removal of old attempts.
"""

from __future__ import annotations

import contextvars
import os
import threading
from contextlib import suppress

from aaiclick.backend import get_logs_dir
from aaiclick.backoff import Backoffs
from aaiclick.config import settings
from aaiclick.errors import ConfigError
from aaiclick.orchestration.rules.naming.log_names import log_name
from aaiclick.telemetry.masks import Masking

TAIL_BYTES = 64 * 1024
"""How much of the end is kept of an output that is too long."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC

_backoffs = Backoffs()
"""By directory. Of the worker, not of the task that runs: they are told outside of any run."""


class RunLog:
    """The log of one run. The file is made by the first thing that is written, or by `open()`.

    Of an output that is too long the beginning is kept as it comes, and the end is written when the run ends. A task
    whose log cannot be written goes on without; that is told once for all of them.
    """

    __slots__ = ("_epoch", "_fd", "_head_left", "_lock", "_lost", "_masking", "_mid_line", "_tail", "_task_id", "path")

    def __init__(self, task_id: int, epoch: int) -> None:
        self._task_id, self._epoch = task_id, epoch
        self._fd: int | None = None  # negative: it cannot be written
        self._head_left = -1
        self._tail = b""
        self._masking: Masking | None = None  # None: nothing was written so far
        self._lost = 0
        self._mid_line = False
        self._lock: threading.Lock | None = threading.Lock()  # None: the log is closed
        self.path: str | None = None
        """Where the file is; None while there is none."""

    def open(self) -> None:
        """Make the file now, even if nothing will be written."""
        self._guarded(b"")

    def write(self, data: bytes) -> None:
        """Add to the log; what comes after its end is dropped."""
        if data:
            self._guarded(data)

    def note(self, text: str) -> None:
        """Add a line of our own."""
        lead = "\n" if self._mid_line else ""
        self._guarded(f"{lead}[aaiclick] {text}\n".encode(errors="backslashreplace"), ends=True)

    def tell(self, text: str) -> None:
        """Add some lines of our own, as they are."""
        lead = "\n" if self._mid_line else ""
        end = "" if text.endswith("\n") else "\n"
        self._guarded(f"{lead}{text}{end}".encode(errors="backslashreplace"), ends=True)

    def close(self) -> None:
        """Write what was kept of the end, and end the log."""
        lock = self._lock
        if lock is None:
            return
        if self._masking is not None:
            self._guarded(b"", ends=True)
        with lock:
            self._lock = None
            fd, self._fd = self._fd, None
        if fd is None or fd < 0:
            return
        backoff = _write(fd, self._ending()) if self._tail else None
        os.close(fd)
        if backoff:
            _tell(backoff)
        else:
            contextvars.Context().run(_backoffs.over, settings().log_dir)

    def _guarded(self, data: bytes, *, ends: bool = False) -> None:
        """Add the data, masked; `ends`: and what was held back, since nothing goes on after it."""
        lock = self._lock
        if lock is None:
            return
        with lock:
            masking = self._masking = self._masking or Masking()
            masked = masking.feed(data) + (masking.end() if ends else b"")
            backoff = self._add(masked) if self._lock and (masked or not ends) else None
        if backoff:  # told when the lock is free: a handler of logging may be waiting for it
            _tell(backoff)

    def _add(self, data: bytes) -> Exception | None:
        backoff = self._make() if self._fd is None else None
        if self._fd is None:
            self._fd = -1
        if self._fd < 0 or not data:
            return backoff
        self._mid_line = not data.endswith(b"\n")
        head, rest = data[: self._head_left], data[self._head_left :]
        self._head_left -= len(head)
        if rest:
            head += self._keep(rest)
        unwritten = _write(self._fd, head)
        if unwritten:
            os.close(self._fd)
            self._fd = -1
        return backoff or unwritten

    def _keep(self, rest: bytes) -> bytes:
        """Remember the end of the output; gives the line that says so, the first time that something is lost."""
        room, first, size = _tail_bytes(), not self._lost, len(self._tail) + len(rest)
        self._tail = (rest if len(rest) >= room else self._tail + rest)[-room:]
        self._lost += size - len(self._tail)
        if not (first and self._lost):
            return b""
        return (
            b"\n[aaiclick] The output is too long: of the rest only the end is kept, to be written when the run ends.\n"
        )

    def _ending(self) -> bytes:
        if not self._lost:
            return self._tail
        return f"[aaiclick] {self._lost} bytes were left out here.\n".encode() + self._tail

    def _make(self) -> Exception | None:
        """Make the file and point `{task_id}.log` to it; gives what went wrong, if anything did."""
        try:
            directory = get_logs_dir()
            path = os.path.join(directory, log_name(self._task_id, self._epoch))
            self._fd = _create(path)
        except (ConfigError, OSError) as error:
            return error
        self.path = path
        self._head_left = settings().log_bytes_max - _tail_bytes()
        try:
            _point(directory, self._task_id, self._epoch)
        except OSError as error:
            return error
        return None


def _tail_bytes() -> int:
    return min(TAIL_BYTES, settings().log_bytes_max // 2)


def _create(path: str) -> int:
    """A new file for its owner only; whatever was planted there goes: a run is the first to write its log."""
    try:
        return os.open(path, _FLAGS, 0o600)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, _FLAGS, 0o600)


def _point(directory: str, task_id: int, epoch: int) -> None:
    """Let `{task_id}.log` be this attempt; what was there before is replaced, not written through."""
    attempt, newest = log_name(task_id, epoch), os.path.join(directory, log_name(task_id))
    passing = os.path.join(directory, f".{attempt}.new")
    with suppress(FileNotFoundError):
        os.unlink(passing)
    try:
        os.link(os.path.join(directory, attempt), passing, follow_symlinks=False)
    except OSError:  # a file system without hard links
        os.symlink(attempt, passing)
    os.replace(passing, newest)


def _write(fd: int, data: bytes) -> OSError | None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError as error:
        return error
    return None


def _tell(error: Exception) -> None:
    directory = settings().log_dir
    what = f"writing the logs of tasks in {directory}"
    contextvars.Context().run(_backoffs.of(directory).met, what, error, "the tasks go on without")
