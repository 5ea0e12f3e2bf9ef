"""Resources: capacities, what is free of them, and who holds the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, facts_of, last_of

if TYPE_CHECKING:
    from aaiclick.orchestration.rules.resource_standings import ResourceInfo


class HolderAnswer(TypedDict):
    """A run that holds a part. `is_ending`: its claim was taken away, and its body may not have ended yet."""

    task_id: Id
    job_id: Id | None
    name: str
    epoch: int
    worker_id: Id
    amount: float
    is_ending: bool


class ResourceAnswer(TypedDict):
    """A unit: a GPU of a node, or all that there is of something else; `node` is null for the whole installation.

    At most 20 holders are listed; `more` counts the others.
    """

    name: str
    node: str | None
    slot: int
    size: float
    free: float
    device: str | None
    memory_mb: int | None
    holders: list[HolderAnswer]
    more: int


class ResourcePage(TypedDict):
    """Units, those of the whole installation first. `next` is the `after` of the page after this; null on the last."""

    resources: list[ResourceAnswer]
    next: str | None


class ResourceRemoved(TypedDict):
    """What was removed."""

    removed: str


def resource_answer(unit: ResourceInfo) -> ResourceAnswer:
    """Return a unit as JSON data."""
    return facts_of(ResourceAnswer, unit, holders=[facts_of(HolderAnswer, holder) for holder in unit.holders])


def resource_page(units: Sequence[ResourceInfo], limit: int | None) -> ResourcePage:
    """Return a page of units."""
    last = last_of(units, limit)
    return ResourcePage(resources=[resource_answer(unit) for unit in units], next=None if last is None else last.place)
