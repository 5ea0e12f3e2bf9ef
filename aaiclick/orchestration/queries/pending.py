"""Why is it pending? What a task waits for, or who or what holds it."""

from __future__ import annotations

from aaiclick.errors import NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.gathering import refuse_staged
from aaiclick.orchestration.rules.pending import Pending, judge
from aaiclick.orchestration.rules.validation import check_id
from aaiclick.orchestration.store.reading.pending import read_facts


async def why_pending(task_id: int) -> Pending:
    """What a task still waits for, by name, or which worker, delay or policy holds it; also for one that runs or ended.

    Names at most ten of what it waits for, and says how many more there are. The cost does not grow with the number of
    tasks.
    """
    wanted = check_id(task_id, "task id")
    refuse_staged(wanted)
    async with connected() as database:
        facts = await database.read(lambda session: read_facts(session, wanted))
    if facts is None:
        raise NotFound(what="task", field="id", value=wanted, hint="")
    return judge(facts)
