"""Writing the logs of runs. Each run has a file `{task_id}.{epoch}.log`; `{task_id}.log` is that of the newest attempt.

Names consist of integers only, and no symbolic link is followed. A log that is kept elsewhere is written to the spool
instead (`shipping`), and sent from there.
"""

from __future__ import annotations

import contextvars
import os
import threading
from typing import TYPE_CHECKING

from aaiclick.backend import get_logs_dir
from aaiclick.backoff import Backoffs
from aaiclick.config import settings
from aaiclick.errors import ConfigError
from aaiclick.orchestration.rules.naming.log_names import log_name
from aaiclick.telemetry.masks import Masking

if TYPE_CHECKING:
    from aaiclick.orchestration.execution.logs.spool import Shipment

TAIL_BYTES = 64 * 1024
"""How many bytes of the end are kept of an output that is too long."""

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC

_backoffs = Backoffs()
"""By log directory. They concern the worker, not a task, so they are logged outside the context of a run."""


class RunLog:
    """The log of one run. The file is created by the first write, or by `open()`. Safe for threads.

    If the output is too long, its beginning is written as it arrives, and its end when the run ends. A task whose log
    cannot be written runs on without it; the trouble is logged once for all of them.
    """

    __slots__ = (
        "_epoch",
        "_fd",
        "_head_left",
        "_lock",
        "_lost",
        "_masking",
        "_mid_line",
        "shipment",
        "_tail",
        "_task_id",
        "path",
    )

    def __init__(self, task_id: int, epoch: int, shipment: Shipment | None = None) -> None:
        self._task_id, self._epoch, self.shipment = task_id, epoch, shipment
        self._fd: int | None = None  # None: not created yet; negative: it cannot be written
        self._head_left = -1
        self._tail = b""
        self._masking: Masking | None = None  # None: nothing has been written
        self._lost = 0
        self._mid_line = False
        self._lock: threading.Lock | None = threading.Lock()  # None: the log is closed
        self.path: str | None = None
        """The path of the file; None while there is none."""

    def open(self) -> None:
        """Create the file now, even if nothing will be written."""
        self._guarded(b"")

    def write(self, data: bytes) -> None:
        """Append to the log. After `close`, data is dropped."""
        if data:
            self._guarded(data)

    def note(self, text: str) -> None:
        """Append one line, marked as written by aaiclick."""
        lead = "\n" if self._mid_line else ""
        self._guarded(f"{lead}[aaiclick] {text}\n".encode(errors="backslashreplace"), ends=True)

    def tell(self, text: str) -> None:
        """Append lines without a mark, such as a traceback."""
        lead = "\n" if self._mid_line else ""
        end = "" if text.endswith("\n") else "\n"
        self._guarded(f"{lead}{text}{end}".encode(errors="backslashreplace"), ends=True)

    def close(self) -> None:
        """Write the end of the output that was kept, and close the file."""
        lock = self._lock
        if lock is None:
            return
        if self._masking is not None:
            self._guarded(b"", ends=True)
        with lock:
            self._lock = None
            fd, self._fd = self._fd, None
        shipment = self.shipment
        if fd is None or fd < 0:
            if shipment is not None:
                shipment.end()
            return
        backoff = self._write(fd, self._ending()) if self._tail else None
        os.close(fd)
        if shipment is not None:
            if not shipment.size:  # there is nothing to send
                os.unlink(shipment.path)
                self.path = None
            shipment.end()
        if backoff:
            _tell(backoff)
        else:
            contextvars.Context().run(_backoffs.over, settings().log_dir)

    def _guarded(self, data: bytes, *, ends: bool = False) -> None:
        """Append the data, masked. With `ends`, also the bytes that masking has held back, since no value continues."""
        lock = self._lock
        if lock is None:
            return
        with lock:
            masking = self._masking = self._masking or Masking()
            masked = masking.feed(data) + (masking.end() if ends else b"")
            backoff = self._add(masked) if self._lock and (masked or not ends) else None
        if backoff:  # logged without the lock: a logging handler may be waiting for it
            _tell(backoff)

    def _add(self, data: bytes) -> Exception | None:
        backoff = self._make() if self._fd is None else None
        if self._fd is None:
            self._fd = -1
        if self._fd < 0 or not data:
            return backoff
        self._mid_line = not data.endswith(b"\n")
        room = min(len(data), self._head_left)
        if self.shipment is not None and (given := self.shipment.take(room)) < room:
            room = self._head_left = given  # the disk's share for logs is used up
        head, rest = data[:room], data[room:]
        self._head_left -= room
        if rest:
            head += self._keep(rest)
        unwritten = self._write(self._fd, head)
        if unwritten:
            os.close(self._fd)
            self._fd = -1
        return backoff or unwritten

    def _keep(self, rest: bytes) -> bytes:
        """Keep the end of the output. Return the line to write now: a notice, the first time that bytes are lost."""
        room, first, size = _tail_bytes(), not self._lost, len(self._tail) + len(rest)
        self._tail = (rest if len(rest) >= room else self._tail + rest)[-room:]
        self._lost += size - len(self._tail)
        if not (first and self._lost):
            return b""
        return (
            b"\n[aaiclick] The output is too long: of the rest only the end is kept, to be written when the run ends.\n"
        )

    def _write(self, fd: int, data: bytes) -> OSError | None:
        error = _write(fd, data)
        if self.shipment is not None:
            self.shipment.grew(len(data) if error is None else os.fstat(fd).st_size - self.shipment.size)
        return error

    def _ending(self) -> bytes:
        if self.shipment is not None and self.shipment.take(len(self._tail)) < len(self._tail):
            noticed, lost = self._lost > 0, self._lost + len(self._tail)
            self._lost, self._tail = lost, b""
            if not noticed:
                return f"\n[aaiclick] {lost} bytes were left out: AAICLICK_LOG_SPOOL_MB are on their way.\n".encode()
        if not self._lost:
            return self._tail
        return f"[aaiclick] {self._lost} bytes were left out here.\n".encode() + self._tail

    def _make(self) -> Exception | None:
        """Create the file and point `{task_id}.log` to it. Return the error, if there was one."""
        name = log_name(self._task_id, self._epoch)
        try:
            path = os.path.join(get_logs_dir(), name) if self.shipment is None else self.shipment.path
            self._fd = _create(path)
        except (ConfigError, OSError) as error:
            return error
        self.path = path
        self._head_left = settings().log_bytes_max - _tail_bytes()
        if self.shipment is not None:
            return None
        from aaiclick.orchestration.log_stores.log_files import point  # here: children do not write logs

        try:
            point(os.path.dirname(path), name, log_name(self._task_id))
        except OSError as error:
            return error
        return None


def _tail_bytes() -> int:
    return min(TAIL_BYTES, settings().log_bytes_max // 2)


def _create(path: str) -> int:
    """Create a file for its owner only, and return its descriptor. An existing file or link is deleted first.

    A run is the first to write its log, so an existing file was planted, or is a leftover.
    """
    try:
        return os.open(path, _FLAGS, 0o600)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, _FLAGS, 0o600)


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
    contextvars.Context().run(_backoffs.of(directory).met, what, error, "the tasks go on without logs")
