"""Decides which events a reader may be given.

Event ids are assigned before the commit, so a gap among the newest may be filled by a transaction still open.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

PATIENCE_S = 5.0
"""Seconds after which a gap counts as left by a transaction that was rolled back."""


def settled(rows: Iterable[tuple[int, datetime]], after: int, now: datetime) -> int:
    """Return how many of these events (id and time, by rising id) precede the first gap that may still be filled.

    `after` is the id of the last event that the reader has.
    """
    last, count = after, 0
    for event_id, at in rows:
        if event_id != last + 1 and now - at < timedelta(seconds=PATIENCE_S):
            break
        last, count = event_id, count + 1
    return count
