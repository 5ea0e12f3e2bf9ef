"""Which events may be told: their ids are given before their commits, so the newest may have gaps that still fill."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

PATIENCE_S = 5.0
"""A gap that nobody has filled for so long was left by a transaction that failed."""


def settled(rows: Iterable[tuple[int, datetime]], after: int, now: datetime) -> int:
    """How many of these events, in the order of their ids, come before the first gap that may still be filled."""
    last, count = after, 0
    for event_id, at in rows:
        if event_id != last + 1 and now - at < timedelta(seconds=PATIENCE_S):
            break
        last, count = event_id, count + 1
    return count
