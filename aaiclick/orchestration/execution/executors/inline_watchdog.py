"""What watches bodies that run in the worker itself: those that outlast its cut-off end the whole process."""

from __future__ import annotations

import logging
import os
import threading

from aaiclick.orchestration.execution.cutoff import Cutoff
from aaiclick.orchestration.execution.runs.current import Running

log = logging.getLogger("aaiclick")

LOOK_S = 1.0
"""How often it looks."""

POLL_S = 0.02
"""How often a thread is asked whether it has ended."""

MOMENT_S = 0.2
"""A process that was paused past the end gets so long: its event loop stops what can be stopped, and a beat may be
answered, which says that nobody else has begun."""


class InlineWatchdog:
    """Knows the bodies that are alive, and ends the process if one outlasts the cut-off."""

    def __init__(self, cutoff: Cutoff) -> None:
        self.cutoff = cutoff
        self._bodies: set[Running] = set()
        """The loop changes it, the guard's thread copies it: each is one step of the interpreter, without a lock."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look_forever, name="aaiclick-guard", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def begin(self, running: Running) -> None:
        """A body begins."""
        if running.claim.stop_when_cut_off:
            self._bodies.add(running)

    def end(self, running: Running) -> None:
        """Nobody waits for it any more."""
        self._bodies.discard(running)

    async def until_dead(self, running: Running) -> None:
        """While the worker is cut off, a body that is stopped is waited for: its claim must not be given back before.

        Either its thread ends, or this process.
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
            said = "this worker is cut off from its database, and others may soon begin what it runs: it ends, since %s"
            log.critical(said + " cannot be stopped", ", ".join(names))
            os._exit(os.EX_TEMPFAIL)
