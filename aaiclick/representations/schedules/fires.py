"""Fires: what became of the times of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of, last_of, time_text

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Fire


class FireAnswer(TypedDict):
    """A time of a schedule and its outcome; `job_id` is its latest run."""

    fire_at: Time
    outcome: str
    job_id: Id | None
    backfill_id: Id | None
    created_at: Time


class FirePage(TypedDict):
    """Times of a registered job, latest first. `next` is the `before` of the next page."""

    fires: list[FireAnswer]
    next: str | None


def fire_page(found: Sequence[Fire], limit: int | None) -> FirePage:
    """Return a page of times."""
    last = last_of(found, limit)
    following = None if last is None else time_text(last.fire_at)
    return FirePage(fires=[facts_of(FireAnswer, each) for each in found], next=following)
