"""Expectations of data that were not met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from aaiclick.representations.fields import Id, Time, facts_of

if TYPE_CHECKING:
    from aaiclick.orchestration.queries.expectations import Unmet


class UnmetAnswer(TypedDict):
    """A data expectation that a run did not meet: `failed`, or only `warned`."""

    task_id: Id
    epoch: int
    outcome: str
    line: str
    at: Time


def unmet_answers(found: Sequence[Unmet]) -> list[UnmetAnswer]:
    """Return what was expected and not found."""
    return [facts_of(UnmetAnswer, each) for each in found]
