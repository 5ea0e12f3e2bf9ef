"""The cut-off: the time by which a worker that cannot reach the database must have stopped its bodies.

An answered heartbeat keeps the session for at least its full length, counted from when the beat was sent. After that
other workers may start the same tasks. Bodies are dead a sixth of that length earlier, by the worker's own monotonic
clock, so no answer from elsewhere is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from aaiclick.clock import SYSTEM_CLOCK, Clock

MARGIN = 1 / 6
"""The fraction of a session between the end of the last body and the first moment at which another worker may start."""

KILL = 1 / 60
"""The fraction of a session that killing may take."""

GRACE_MAX = 1 / 3
"""The maximum fraction of a session between asking bodies to end and killing them."""


class Cutoff:
    """The times at which bodies are asked to end and are killed, moved forward by each answer. Safe for threads."""

    def __init__(self, session_s: float, grace_s: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.session_s = session_s
        self.grace_s = min(grace_s, session_s * GRACE_MAX)
        self.clock = clock
        self.ask_at = self.kill_at = float("inf")
        """By the monotonic clock. Infinite until a session begins."""
        self.lapses = 0
        """How often an answer arrived after bodies had been asked to end."""
        self.tell: Callable[[float, float], None] = _nobody
        """Called with `ask_at` and `kill_at` whenever they change."""
        self._sent = float("-inf")
        self._lock = threading.Lock()

    def renewed(self, sent: float) -> None:
        """Move the cut-off: a heartbeat or registration that was sent at this time has been answered."""
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
        """Return whether bodies have to end, and none may begin."""
        return self.clock.monotonic() >= self.ask_at

    def silent_s(self) -> float:
        """Return the seconds since the last answered call was sent."""
        return self.clock.monotonic() - self._sent


def _nobody(ask_at: float, kill_at: float) -> None:
    """Do nothing; the default of `Cutoff.tell`."""
