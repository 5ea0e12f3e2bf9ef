"""What there is to do for whoever leads."""

from __future__ import annotations

from functools import partial

from aaiclick.orchestration.control.reconcilers import RECONCILERS, questions_of
from aaiclick.orchestration.store.pending_work import look_for_work
from tests.support.orchestra import Orchestra


async def chores(band: Orchestra) -> dict[str, float]:
    """In how many seconds there is something to do, by reconcilers."""
    return await band.database.read(partial(look_for_work, questions=questions_of(RECONCILERS)))
