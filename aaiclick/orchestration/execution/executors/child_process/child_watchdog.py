"""A child that watches itself: it dies in time, also if the worker and the nursery are paused."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time

from aaiclick.orchestration.execution.executors.shared_times import SharedTimes

LOOK_S = 1.0
"""How often a run looks whether it may go on."""


class ChildWatchdog:
    """Ends this process, with all that its run has started, when the page says so."""

    def __init__(self, page: SharedTimes) -> None:
        self.page = page
        self._running = threading.Event()
        """Set while a run goes on that must not outlast the page."""

    def start(self) -> None:
        """On a thread of its own: the body has the main one."""
        threading.Thread(target=self._look_forever, name="aaiclick-watch", daemon=True).start()

    def begin(self) -> None:
        """A run begins."""
        self._running.set()

    def end(self) -> None:
        """It is over."""
        self._running.clear()

    def is_asking(self) -> bool:
        """Whether the state has not answered the worker for so long that this run is to end."""
        return self._running.is_set() and time.monotonic() >= self.page.ask_at

    def _look_forever(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals are for the body
        while True:
            self._running.wait()
            left_s = self.page.kill_at - time.monotonic()
            if left_s <= 0 and self._running.is_set():
                os.killpg(os.getpgid(0), signal.SIGKILL)
            time.sleep(min(max(left_s, 0.0), LOOK_S))


def die_with(line: socket.socket) -> None:
    """Where the system does not kill us when our parent dies: die when the worker hangs up."""
    poller = select.poll()
    poller.register(line, 0)  # hang-ups are always told
    poller.poll()
    os.killpg(os.getpgid(0), signal.SIGKILL)
