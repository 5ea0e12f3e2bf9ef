"""Which events may be told: not beyond a gap that may still be filled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from aaiclick.orchestration.rules.settled_events import PATIENCE_S, settled

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
OLD, NEW = NOW - timedelta(seconds=PATIENCE_S + 1), NOW - timedelta(seconds=1)


@pytest.mark.parametrize(
    ("rows", "after", "count"),
    [
        ([], 0, 0),
        ([(1, NEW), (2, NEW)], 0, 2),
        ([(1, NEW), (3, NEW)], 0, 1),  # 2 may still be committed
        ([(1, OLD), (3, OLD), (4, NEW)], 0, 3),  # 2 never came
        ([(1, OLD), (3, OLD), (5, NEW)], 0, 2),
        ([(7, NEW)], 5, 0),
        ([(7, OLD)], 5, 1),
        ([(6, NEW)], 5, 1),
    ],
)
def test_events_are_told_up_to_the_first_open_gap(rows: list[tuple[int, datetime]], after: int, count: int) -> None:
    assert settled(rows, after, NOW) == count
