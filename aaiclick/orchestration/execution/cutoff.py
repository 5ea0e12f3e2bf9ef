"""By when a worker that the state does not answer must have stopped its bodies: before anybody else may start them.

A beat that was sent at some time and answered keeps the session for its whole length from then on, or longer. Bodies
are dead a sixth of it earlier, by the worker's own monotonic clock: nobody needs to be asked for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from aaiclick.clock import SYSTEM_CLOCK, Clock

MARGIN = 1 / 6
"""The part of a session that lies between the last body's end and the first moment at which another may begin."""

KILL = 1 / 60
"""The part of a session that a kill may take."""

GRACE_MAX = 1 / 3
"""The part of a session that bodies may have between being asked and being killed."""


class Cutoff:
    """When bodies are asked to end, and when they are killed, unless the state answers before; any thread may ask."""

    def __init__(self, session_s: float, grace_s: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.session_s = session_s
        self.grace_s = min(grace_s, session_s * GRACE_MAX)
        self.clock = clock
        self.ask_at = self.kill_at = float("inf")
        """Never, as long as there is no session."""
        self.lapses = 0
        """How often bodies were asked, and the state answered after all."""
        self.tell: Callable[[float, float], None] = _nobody
        """Told each time: when they are asked, when they are killed."""
        self._sent = float("-inf")
        self._lock = threading.Lock()

    def renewed(self, sent: float) -> None:
        """What was sent at that time, a beat or the registration, was answered: the session lives."""
        with self._lock:
            if sent <= self._sent:
                return
            if self.is_asking():
                self.lapses += 1
            self._sent = sent
            self.kill_at = sent + self.session_s * (1 - MARGIN - KILL)
            self.ask_at = self.kill_at - self.grace_s
            self.tell(self.ask_at, self.kill_at)

    def is_asking(self) -> bool:
        """Whether bodies are to end, and none may begin."""
        return self.clock.monotonic() >= self.ask_at

    def silent_s(self) -> float:
        """How long ago that was sent which was answered last."""
        return self.clock.monotonic() - self._sent


def _nobody(ask_at: float, kill_at: float) -> None:
    """Nobody wants to know."""
