"""What is known of a task's claim, by the names of leases and nodes."""

from __future__ import annotations

from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.validation import check_id
from aaiclick.orchestration.store.claims import single_claims
from aaiclick.orchestration.store.claims.single_claims import Held


async def load_task_lease(task_id: int) -> Held:
    """Return the end of a task's lease, the node that has it or had it last, and its needs. Raise NotFound."""
    wanted = check_id(task_id, "task id")
    async with connected() as database:
        return await database.read(lambda session: single_claims.read_held(session, wanted))
