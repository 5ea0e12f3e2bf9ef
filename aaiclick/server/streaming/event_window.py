"""The newest events, as they are told, kept once for all who listen."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

BYTES_MAX = 4 * 2**20
PIECES_MAX = 240
"""Whoever is further behind than the window goes reads from the database."""


class EventMessage(NamedTuple):
    """An event in the words of a stream."""

    id: int
    job_id: int
    text: bytes


class EventPiece:
    """All that may be told of the events behind `after`, up to `cursor`."""

    __slots__ = ("_told", "after", "cursor", "text")

    def __init__(self, after: int, cursor: int, told: Sequence[EventMessage]) -> None:
        self.after = after
        self.cursor = cursor
        self._told = told
        self.text = b"".join([*(each.text for each in told), self._moved_on(told)])

    def part(self, after: int, job_id: int | None) -> bytes:
        """What somebody who has heard all up to `after` has yet to hear, of one job or of all."""
        if after <= self.after and job_id is None:
            return self.text  # the same bytes for all: no copy for each
        mine = [each for each in self._told if each.id > after and job_id in (None, each.job_id)]
        return b"".join([*(each.text for each in mine), self._moved_on(mine)])

    def _moved_on(self, told: Sequence[EventMessage]) -> bytes:
        """Behind others' events: a client that comes again need not hear of them."""
        return b"" if told and told[-1].id == self.cursor else f"id: {self.cursor}\n\n".encode()


class EventWindow:
    """Pieces that join each other: all that may be told behind `start`, up to `end`."""

    def __init__(self, place: int) -> None:
        self.start = self.end = place
        self._pieces: deque[EventPiece] = deque()
        self._bytes = 0

    def add(self, piece: EventPiece) -> None:
        """The next piece; the oldest go where there are too many, or they are too large."""
        assert piece.after == self.end < piece.cursor, "pieces join"
        self._pieces.append(piece)
        self._bytes += 2 * len(piece.text)  # whole, and event by event
        self.end = piece.cursor
        while self._bytes > BYTES_MAX or len(self._pieces) > PIECES_MAX:
            oldest = self._pieces.popleft()
            self._bytes -= 2 * len(oldest.text)
            self.start = oldest.cursor

    def behind(self, place: int) -> EventPiece | None:
        """The piece that goes on behind this place; None if that has not come yet. Not for places before `start`."""
        found = None
        for piece in reversed(self._pieces):
            if piece.cursor <= place:
                break
            found = piece
        return found
