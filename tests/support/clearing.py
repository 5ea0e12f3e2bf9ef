"""Clearing, and what must hold after it."""

from __future__ import annotations

from itertools import pairwise

from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.store.moves.clears import Cleared, clear_tasks
from tests.support.orchestra import Orchestra


async def clear(band: Orchestra, *roots: Task) -> Cleared:
    """Clear in one transaction; whatever holds after every commit must hold then."""
    cleared = await band.database.transact(lambda session: clear_tasks(session, [root.id for root in roots]))
    assert await band.violations(at_rest=False) == []
    return cleared


async def finish(band: Orchestra, job: Job, status: str = "completed") -> list[str]:
    """Bring the job to its end; gives the names of what ran on the way."""
    ran = [claim.name for claim in await band.drain()]
    assert (await band.job(job)).status == status
    assert await band.violations() == []
    return ran


def chain(*nodes: Node) -> list[Node]:
    for previous, following in pairwise(nodes):
        previous >> following
    return list(nodes)
