"""Limits the number of connections of one server, and chooses which is closed when there are too many.

At most half of them may be strangers: connections whose last request had no valid token. When there is no room, the
connection that has been idle longest is closed, a stranger's first. Many silent strangers therefore keep nobody out:
a client sends its request at once, and only idle connections are closed.
"""

from __future__ import annotations

import resource
from typing import Protocol

CONNECTIONS_MAX = 1000
DESCRIPTORS_KEPT = 100
"""File descriptors left for the rest of this process: databases, logs, children."""

KNOWN = "known"
"""Key in a request's state of a function to call when the request had a valid token."""


class Guest(Protocol):
    """A connection, as `Crowd` sees it."""

    def hang_up(self) -> None:
        """Close the connection at once."""


def room() -> int:
    """Return how many connections this process may hold, given its limit of open files."""
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
        self._idle_strangers: dict[Guest, None] = {}  # in the order in which they became idle
        self._idle_known: dict[Guest, None] = {}

    def enter(self, guest: Guest) -> None:
        """Add a new connection; close idle ones to make room, or this one if none is idle."""
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
        """Note that the connection is idle: no request is under way."""
        if guest in self.there:
            self.work(guest)
            (self._idle_strangers if guest in self.strangers else self._idle_known)[guest] = None

    def work(self, guest: Guest) -> None:
        """Note that a request is under way, so the connection is not closed to make room."""
        self._idle_strangers.pop(guest, None)
        self._idle_known.pop(guest, None)

    def know(self, guest: Guest, known: bool) -> None:
        """Note whether the connection's last request had a valid token."""
        if known:
            self.strangers.discard(guest)
        elif guest in self.there:
            self.strangers.add(guest)

    def leave(self, guest: Guest) -> None:
        """Remove a closed connection."""
        self.work(guest)
        self.there.discard(guest)
        self.strangers.discard(guest)
