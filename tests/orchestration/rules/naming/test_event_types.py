"""What events are called by those who speak of leases and nodes."""

from __future__ import annotations

from aaiclick.orchestration.rules.naming.event_types import EVENT_TYPES
from aaiclick.orchestration.rules.states import CACHE_HIT, CACHE_MISS, TASK_MOVES, TASK_NOTES, UNMET

SPECIFIED = {"pending", "assigned", "started", "completed", "failed", "cancelled"}
"""Besides `created`, of which a task has no event, and `reassigned`, which is a claim too."""

OF_OUR_OWN = {"lease_expired", "upstream_failed", "skipped", "removed", "late_report"}


def test_every_event_of_a_task_has_a_name_and_every_name_an_event() -> None:
    as_they_are = {*UNMET, CACHE_HIT, CACHE_MISS}
    assert set(EVENT_TYPES) | as_they_are == {*TASK_MOVES, *TASK_NOTES}
    assert set(EVENT_TYPES.values()) == SPECIFIED | OF_OUR_OWN
