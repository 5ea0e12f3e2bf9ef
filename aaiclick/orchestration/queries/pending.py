"""Why a task does not run: the tasks and groups it waits for, or the worker, delay or policy that holds it."""

from __future__ import annotations

from aaiclick.errors import NotFound
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.gathering import refuse_staged
from aaiclick.orchestration.rules.pending import Pending, judge
from aaiclick.orchestration.rules.validation import check_id
from aaiclick.orchestration.store.reading.pending import read_facts


async def why_pending(task_id: int) -> Pending:
    """Return what a task still waits for, by name, or which worker, delay or policy holds it.

    At most ten of the tasks and groups it waits for are named, and the rest are counted. A task that runs or has ended
    is answered too. The cost does not grow with the number of tasks.
    """
    wanted = check_id(task_id, "task id")
    refuse_staged(wanted)
    async with connected() as database:
        facts = await database.read(lambda session: read_facts(session, wanted))
    if facts is None:
        raise NotFound(what="task", field="id", value=wanted, hint="")
    return judge(facts)
