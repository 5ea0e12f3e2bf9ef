"""Events: moves of jobs and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of

if TYPE_CHECKING:
    from aaiclick.orchestration.models import Event


class EventAnswer(TypedDict):
    """A move of a job or a task."""

    id: Id
    job_id: Id
    task_id: Id | None
    epoch: int | None
    move: str
    status: str
    worker_id: Id | None
    at: Time
    detail: str | None


class EventPage(TypedDict):
    """Events in order. `next` is the `after` of the next page; more may always follow."""

    events: list[EventAnswer]
    next: Id


def event_answer(event: Event) -> EventAnswer:
    """Return an event as JSON data."""
    return facts_of(EventAnswer, event)


def event_page(events: Sequence[Event], cursor: int) -> EventPage:
    """Return a page of events, up to this id."""
    return EventPage(events=[event_answer(event) for event in events], next=str(cursor))
