"""The newest events in the encoding of the stream, kept once for all listeners."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

BYTES_MAX = 4 * 2**20
PIECES_MAX = 240
"""Limits of the window; streams that are further behind read from the database."""


class EventMessage(NamedTuple):
    """An event encoded as a server-sent event."""

    id: int
    job_id: int
    text: bytes


class EventPiece:
    """Consecutive events with `after` < id <= `cursor`."""

    __slots__ = ("_told", "after", "cursor", "text")

    def __init__(self, after: int, cursor: int, told: Sequence[EventMessage]) -> None:
        self.after = after
        self.cursor = cursor
        self._told = told
        self.text = b"".join([*(each.text for each in told), self._moved_on(told)])

    def part(self, after: int, job_id: int | None) -> bytes:
        """Return the text of the events after this id, of one job or of all jobs if `job_id` is None."""
        if after <= self.after and job_id is None:
            return self.text  # the same bytes object for all streams, without copies
        mine = [each for each in self._told if each.id > after and job_id in (None, each.job_id)]
        return b"".join([*(each.text for each in mine), self._moved_on(mine)])

    def _moved_on(self, told: Sequence[EventMessage]) -> bytes:
        """Return an id line for the cursor unless the last event carries it.

        A client that reconnects with this id skips the events of other jobs.
        """
        return b"" if told and told[-1].id == self.cursor else f"id: {self.cursor}\n\n".encode()


class EventWindow:
    """Adjacent pieces: all events with `start` < id <= `end`."""

    def __init__(self, place: int) -> None:
        self.start = self.end = place
        self._pieces: deque[EventPiece] = deque()
        self._bytes = 0

    def add(self, piece: EventPiece) -> None:
        """Append the next piece, and drop the oldest while there are more than PIECES_MAX or BYTES_MAX."""
        assert piece.after == self.end < piece.cursor, "pieces join"
        self._pieces.append(piece)
        self._bytes += 2 * len(piece.text)  # its text is kept twice: joined and per event
        self.end = piece.cursor
        while self._bytes > BYTES_MAX or len(self._pieces) > PIECES_MAX:
            oldest = self._pieces.popleft()
            self._bytes -= 2 * len(oldest.text)
            self.start = oldest.cursor

    def behind(self, place: int) -> EventPiece | None:
        """Return the piece with the next events after this id; None if there are none yet.

        The id must not be before `start`: the events between are no longer here.
        """
        found = None
        for piece in reversed(self._pieces):
            if piece.cursor <= place:
                break
            found = piece
        return found
