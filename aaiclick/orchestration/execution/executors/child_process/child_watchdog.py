"""The watchdog of a child process: it kills the child at the cut-off, also if worker and nursery are paused."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time

from aaiclick.orchestration.execution.executors.shared_times import SharedTimes

LOOK_S = 1.0
"""How often the shared times are read."""


class ChildWatchdog:
    """Kills this process and its process group at the cut-off, if a run is going on that must stop then."""

    def __init__(self, page: SharedTimes) -> None:
        self.page = page
        self._running = threading.Event()
        """Set while a run is going on that must not outlast the cut-off."""

    def start(self) -> None:
        """Start the watchdog's thread; the main thread is the body's."""
        threading.Thread(target=self._look_forever, name="aaiclick-watch", daemon=True).start()

    def begin(self) -> None:
        """Watch from now on: a run begins that must not outlast the cut-off."""
        self._running.set()

    def end(self) -> None:
        """Stop watching: the run is over."""
        self._running.clear()

    def is_asking(self) -> bool:
        """Return whether this run has to end because the worker is cut off from the database."""
        return self._running.is_set() and time.monotonic() >= self.page.ask_at

    def _look_forever(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals are for the main thread
        while True:
            self._running.wait()
            left_s = self.page.kill_at - time.monotonic()
            if left_s <= 0 and self._running.is_set():
                os.killpg(os.getpgid(0), signal.SIGKILL)
            time.sleep(min(max(left_s, 0.0), LOOK_S))


def die_with(line: socket.socket) -> None:
    """Wait until the worker closes the line, then kill this process and its group.

    It replaces PR_SET_PDEATHSIG on systems other than Linux.
    """
    poller = select.poll()
    poller.register(line, 0)  # POLLHUP is always reported
    poller.poll()
    os.killpg(os.getpgid(0), signal.SIGKILL)
