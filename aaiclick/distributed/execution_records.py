"""Execution records: what is remembered of each execution of a task, under its idempotency key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from aaiclick.distributed.task_managers import DistributedTaskManager, TaskId, id_of
from aaiclick.errors import ClaimLost, Conflict
from aaiclick.orchestration.execution.runs.runner import run_claim
from aaiclick.orchestration.models import Failure
from aaiclick.orchestration.rules.values.encoding import decode_value
from aaiclick.orchestration.store.reading.execution_records import read_records


@dataclass(frozen=True)
class ExecutionRecord:
    """One execution of a task. The key is the same for all attempts, until the task is cleared."""

    task_id: str
    attempt_id: str
    idempotency_key: str
    result: Any
    status: Literal["pending", "completed", "failed"]


async def list_records(manager: DistributedTaskManager, task_id: TaskId) -> list[ExecutionRecord]:
    """Return the executions of a task, the oldest first."""
    wanted, database = id_of(task_id), await manager.database()
    rows = await database.read(lambda session: read_records(session, wanted))
    return [
        ExecutionRecord(
            task_id=str(row.task_id),
            attempt_id=str(row.attempt_id),
            idempotency_key=row.idempotency_key,
            result=None if row.result is None else decode_value(row.result),
            status=row.status,
        )
        for row in rows
    ]


async def execute_with_idempotency(manager: DistributedTaskManager, task_id: TaskId, node_id: str) -> Any:
    """Return the result of a task: the remembered one if it has completed, else that of a run in this process.

    Raise Conflict if the task is leased to others, waits for something, or if its run fails; ClaimLost if the lease
    ended before the report, so that others run the task.
    """
    task = await manager.get_task(task_id)
    for record in await list_records(manager, task_id):
        if record.status == "completed" and record.idempotency_key == task.idempotency_key:
            return record.result
    lease = await manager.acquire_lease(task_id, node_id)
    if lease is None:
        cause = "it is not ready, or it is leased"
        raise Conflict(what=f"Task {task.id}", verb="executed", cause=cause, hint="Ask again later.")
    report = await run_claim(lease.claim)
    receipt = await (await manager.coordinator()).report(lease.claim.worker_id, [report])
    if (report.task_id, report.epoch) not in receipt.accepted:
        raise ClaimLost(task_id=report.task_id, epoch=report.epoch, move="report")
    if isinstance(report, Failure):
        raise Conflict(what=f"Task {task.id}", verb="executed", cause=report.error, hint="")
    return decode_value(report.result_json)
