"""How many connections there are: so many in all, half of them of strangers, who have shown no token that counts.

Where there is no room, whoever has waited longest for nothing goes, a stranger first. A crowd of strangers who say
nothing keeps nobody out: whoever comes sends their request at once, and it would have to be faster than that.
"""

from __future__ import annotations

import resource
from typing import Protocol

CONNECTIONS_MAX = 1000
DESCRIPTORS_KEPT = 100
"""Open files that the rest of this process may need: databases, logs, children."""

KNOWN = "known"
"""In a request's state: to be called when it came with a token that counts."""


class Guest(Protocol):
    """A connection."""

    def hang_up(self) -> None:
        """Close it now."""


def room() -> int:
    """How many connections this process can have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else soft - DESCRIPTORS_KEPT
    return max(16, min(CONNECTIONS_MAX, spare))


class Crowd:
    """All connections of one server."""

    def __init__(self, most: int | None = None) -> None:
        self.most = room() if most is None else most
        self.strangers_most = self.most // 2
        self.there: set[Guest] = set()
        self.strangers: set[Guest] = set()
        self._idle_strangers: dict[Guest, None] = {}  # the longest first
        self._idle_known: dict[Guest, None] = {}

    def enter(self, guest: Guest) -> None:
        """Somebody new, who may have to go at once."""
        self.there.add(guest)
        self.strangers.add(guest)
        while guest in self.there and (len(self.there) > self.most or len(self.strangers) > self.strangers_most):
            goes = self._who_goes() or guest
            self.leave(goes)
            goes.hang_up()
        self.wait(guest)

    def _who_goes(self) -> Guest | None:
        if self._idle_strangers or len(self.strangers) > self.strangers_most:
            return next(iter(self._idle_strangers), None)
        return next(iter(self._idle_known), None)

    def wait(self, guest: Guest) -> None:
        """They have nothing under way."""
        if guest in self.there:
            self.work(guest)
            (self._idle_strangers if guest in self.strangers else self._idle_known)[guest] = None

    def work(self, guest: Guest) -> None:
        """They have asked for something."""
        self._idle_strangers.pop(guest, None)
        self._idle_known.pop(guest, None)

    def know(self, guest: Guest, known: bool) -> None:
        """Whether their last request came with a token that counts."""
        if known:
            self.strangers.discard(guest)
        elif guest in self.there:
            self.strangers.add(guest)

    def leave(self, guest: Guest) -> None:
        """They have gone."""
        self.work(guest)
        self.there.discard(guest)
        self.strangers.discard(guest)
