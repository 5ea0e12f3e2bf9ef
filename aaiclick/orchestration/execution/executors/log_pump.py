"""A thread that copies the output of children into the logs of their runs, so that output never blocks the loop."""

from __future__ import annotations

import array
import fcntl
import logging
import os
import selectors
import termios
import threading

from aaiclick.orchestration.execution.logs.run_logs import RunLog

log = logging.getLogger("aaiclick")

CHUNK_BYTES = 64 * 1024


class Flow:
    """The output of one run: a pipe from the child, and the log into which it is copied."""

    __slots__ = ("fd", "lock", "log")

    def __init__(self, fd: int, log: RunLog) -> None:
        self.fd, self.log = fd, log
        self.lock = threading.Lock()

    def carry(self) -> bool:
        """Copy the available output, up to one chunk. Return False at the pipe's end, or if the flow is finished."""
        with self.lock:
            if self.fd < 0:
                return False
            try:
                data = os.read(self.fd, CHUNK_BYTES)
            except BlockingIOError:
                return True
            self.log.write(data)
            return bool(data)

    def finish(self) -> None:
        """Copy what has been written so far and close the pipe, also if some process still holds the other end."""
        with self.lock:
            left = array.array("i", [0])
            fcntl.ioctl(self.fd, termios.FIONREAD, left)
            waiting = left[0]
            while waiting > 0 and (data := os.read(self.fd, min(waiting, CHUNK_BYTES))):
                self.log.write(data)
                waiting -= len(data)
            os.close(self.fd)
            self.fd = -1


class LogPump:
    """The thread, and the flows that it serves."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = os.pipe()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._carry_all, name="aaiclick-logs", daemon=True)
        self._thread.start()

    def open(self, log: RunLog) -> tuple[Flow, int]:
        """Return a new flow into this log, and the descriptor of its writing end, which the caller closes."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        flow = Flow(reading, log)
        self._selector.register(reading, selectors.EVENT_READ, flow)
        return flow, writing

    def finish(self, flow: Flow) -> None:
        """Finish the flow of a run that has ended. On return all that was written is in the log."""
        with flow.lock:  # unregistered before it is closed, since the descriptor's number may then be reused
            self._forget(flow)
        flow.finish()

    def close(self) -> None:
        """End the thread."""
        os.write(self._waker, b"x")
        self._thread.join()
        self._selector.close()
        os.close(self._woken)
        os.close(self._waker)

    def _carry_all(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                if not self._carry(key.data):
                    with key.data.lock:
                        self._forget(key.data)

    def _carry(self, flow: Flow) -> bool:
        try:
            return flow.carry()
        except Exception:  # an error in one flow must not stop the others
            log.exception("The output of a task cannot be written to its log")
            return False

    def _forget(self, flow: Flow) -> None:
        """Unregister a flow: the selector would report a pipe at its end as ready for ever. The flow's lock is held."""
        if flow.fd >= 0 and self._selector.get_map().get(flow.fd) is not None:
            self._selector.unregister(flow.fd)
