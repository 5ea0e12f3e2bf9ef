"""The watchdog of bodies that run in the worker's process: it ends the process if one of them outlasts the cut-off."""

from __future__ import annotations

import logging
import os
import threading

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.runs.current import Running

log = logging.getLogger("aaiclick")

LOOK_S = 1.0
"""How often the watchdog checks the cut-off."""

POLL_S = 0.02
"""How often to check whether a thread has ended."""

MOMENT_S = 0.2
"""How long a process that was paused beyond the cut-off may still run. In that time its loop stops the bodies that can
be stopped, or a heartbeat is answered, which means that no other worker has started them."""


class InlineWatchdog:
    """Ends the process if a body that must stop at the cut-off outlasts it."""

    def __init__(self, cutoff: Cutoff) -> None:
        self.cutoff = cutoff
        self._bodies: set[Running] = set()
        """Changed by the loop, copied by the watchdog's thread. Each is atomic in the interpreter and needs no lock."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look_forever, name="aaiclick-guard", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def begin(self, running: Running) -> None:
        """Watch this run, if it must stop at the cut-off."""
        if running.claim.stop_when_cut_off:
            self._bodies.add(running)

    def end(self, running: Running) -> None:
        """Watch this run no longer."""
        self._bodies.discard(running)

    async def until_dead(self, running: Running) -> None:
        """If the worker is cut off, wait until the stopped body has ended: its claim must not be released before.

        Either its thread ends, or the watchdog ends this process.
        """
        running.asked_to_stop = True
        if running in self._bodies and self.cutoff.is_asking():
            while running.goes_on:
                await self.cutoff.clock.sleep(POLL_S)

    def close(self) -> None:
        self._closed.set()

    def _look_forever(self) -> None:
        late = False
        while not self._closed.is_set():
            left_s = self.cutoff.kill_at - self.cutoff.clock.monotonic()
            if left_s > 0:
                late = False
                self._closed.wait(min(left_s, LOOK_S))
            elif left_s < -MOMENT_S and not late:
                late = True
                self._closed.wait(MOMENT_S)
            else:
                self._end_what_goes_on()
                self._closed.wait(MOMENT_S)

    def _end_what_goes_on(self) -> None:
        names = sorted({running.claim.name for running in self._bodies.copy() if running.goes_on})
        if names:
            said = "this worker is cut off from its database, and others may soon start its tasks: it ends, because %s"
            log.critical(said + " cannot be stopped", ", ".join(names))
            os._exit(os.EX_TEMPFAIL)
