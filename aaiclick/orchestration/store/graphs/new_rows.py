"""The rows of new jobs, tasks, groups and edges, made from the models that users build in memory."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from aaiclick.orchestration.models import Group, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import Plan
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, graph_locks, jobs


async def insert_job(session: Session, submission: Submission, now: datetime) -> None:
    """Insert a new job, its graph's lock and its event; its counters include the graph that is inserted next."""
    job = submission.new_job
    assert job is not None
    row = {column.name: getattr(job, column.name) for column in jobs.columns if column.name != "result"}
    row |= {"result": job.result_json, "created_at": now}
    row["arguments"] = None if job.arguments is None else json.dumps(job.arguments, ensure_ascii=False)
    row |= {"total_tasks": len(submission.tasks), "open_tasks": len(submission.tasks)}
    await session.insert(jobs, [row])
    await session.insert(graph_locks, [{"job_id": job.id}])
    await session.insert(events, [_created(job.id, len(submission.tasks), now)])


def _created(job_id: int, count: int, now: datetime) -> dict[str, Any]:
    """Return the event of a new job, with the number of its tasks: metrics are counted from events."""
    return {"job_id": job_id, "move": "create", "status": "pending", "at": now, "detail": str(count)}


def task_row(task: Task, plan: Plan, job_id: int, now: datetime) -> dict[str, Any]:
    return {
        "id": task.id,
        "job_id": job_id,
        "group_id": task.group_id,
        "parent_task_id": task.parent_task_id,
        "parent_epoch": task.parent_epoch,
        "name": task.name,
        "entrypoint": task.entrypoint,
        "kwargs": task.kwargs_json,
        "status": "pending",
        "unmet_count": plan.task_unmet[task.id],
        "dependents_count": plan.dependents[task.id],
        "gated": task.id in plan.gated,
        "needs_inputs": task.needs_inputs,
        "critical": task.critical,
        "priority": task.priority,
        "reserved_for": task.reserved_for,
        "lane": task.lane,
        "max_retries": task.max_retries,
        "retry_policy": task.retry.to_json(),
        "timeout_s": task.timeout_s,
        "created_at": now,
        "kept": task.kept,
        "stop_when_cut_off": task.stop_when_cut_off,
        "trigger_rule": task.when,
        "awaited_count": plan.awaited.get(task.id, 0),
        "amiss": task.id in plan.amiss,
        "cache_policy": task.cache_policy,
    }


def group_row(group: Group, plan: Plan, job_id: int, now: datetime) -> dict[str, Any]:
    return {
        "id": group.id,
        "job_id": job_id,
        "parent_group_id": group.parent_group_id,
        "name": group.name,
        "depth": plan.group_depth[group.id],
        "unmet_count": plan.group_unmet[group.id],
        "open_count": plan.group_open[group.id],
        "dependents_count": plan.dependents[group.id],
        "created_at": now,
        "output_task_id": group.output_task_id,
        "parent_task_id": group.parent_task_id,
        "unended_count": plan.group_open[group.id],
        "trigger_rule": group.when,
        "awaited_count": plan.awaited.get(group.id, 0),
        "amiss": group.id in plan.amiss,
        "lane": group.lane,
    }


def edge_rows(submission: Submission, plan: Plan) -> list[dict[str, Any]]:
    """Return the rows of the new edges; equal edges get one row."""
    edges = {(edge.previous.id, edge.next.id): edge for edge in submission.edges}
    return [
        {
            "previous_id": pair[0],
            "previous_type": edge.previous.kind,
            "next_id": pair[1],
            "next_type": edge.next.kind,
            "job_id": submission.job_id,
            "met": pair in plan.met,
        }
        for pair, edge in edges.items()
    ]


def ready_row(task: Task, job_id: int) -> dict[str, Any]:
    """Return the row of `ready` of a task that waits for nothing."""
    place = {"reserved_for": task.reserved_for, "lane": task.lane, "rank": -task.priority}
    return place | {"job_id": job_id, "task_id": task.id}
