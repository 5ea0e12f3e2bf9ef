"""Inserts of new jobs and of their graphs: everything in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from aaiclick.config import settings
from aaiclick.errors import CircularDependencyError, TooManyTasks, UnknownNode
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import (
    Plan,
    Shape,
    Stored,
    containment_cycle,
    descendants,
    find_cycle,
    make_plan,
)
from aaiclick.orchestration.rules.naming.hints import ENDED, READY
from aaiclick.orchestration.rules.triggers import When
from aaiclick.orchestration.rules.values.reference_marks import marks_of, mentions_objects
from aaiclick.orchestration.store.graphs import new_rows
from aaiclick.orchestration.store.moves.affinity import bring_near
from aaiclick.orchestration.store.moves.facts import told_of
from aaiclick.orchestration.store.moves.ripples import spread
from aaiclick.orchestration.store.object_tables.inputs import pin_inputs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, ready, tasks
from aaiclick.orchestration.store.transitions import move_job

PATH_MAX = 16
"""Maximum number of steps of a cycle that an error shows."""


def shape_of(submission: Submission) -> Shape:
    """Return the shape of a submission; equal edges count once."""
    return Shape(
        tasks={task.id: task.group_id for task in submission.tasks},
        groups={group.id: group.parent_group_id for group in submission.groups},
        edges={(edge.previous.id, edge.next.id) for edge in submission.edges},
        rules={
            node.id: node.when for node in (*submission.tasks, *submission.groups) if node.when != When.ALL_COMPLETED
        },
    )


def refuse_cycles(shape: Shape, names: dict[int, str]) -> None:
    """Raise CircularDependencyError if nodes wait for each other, or groups contain each other."""
    cycle = containment_cycle(shape.groups) or find_cycle(shape)
    if cycle is not None:
        steps = [names.get(node, str(node)) for node in cycle]
        if len(set(steps)) < len(set(cycle)):  # nodes of equal names are told apart by their ids
            steps = [f"{step} ({node})" for step, node in zip(steps, cycle, strict=True)]
        if len(steps) > PATH_MAX:
            half = PATH_MAX // 2
            steps[half:-half] = [f"… {len(steps) - 2 * half} more …"]
        raise CircularDependencyError(path=" → ".join(steps))


def names_of(submission: Submission) -> dict[int, str]:
    """Return the names by which errors mention the nodes of this submission."""
    nodes = [*submission.tasks, *submission.groups]
    nodes += [end for edge in submission.edges for end in (edge.previous, edge.next)]
    return {node.id: str(node) for node in nodes}


async def add_job(session: Session, submission: Submission) -> Plan:
    """Store a new job with its graph."""
    assert submission.new_job is not None
    shape = shape_of(submission)
    refuse_cycles(shape, names_of(submission))
    refuse_unknown(submission, shape, set())
    refuse_too_many(len(submission.tasks))
    if submission.new_job.result_json is not None:
        keep_results(submission, marks_of(submission.new_job.result_json))
    plan = make_plan(shape, Stored())
    now = await session.now()
    await new_rows.insert_job(session, submission, now)
    await insert_graph(session, submission, plan, now, submission.new_job.reserved_for)
    given = {task.id: task.kwargs_json for task in submission.tasks if mentions_objects(task.kwargs_json)}
    if (returned := submission.new_job.result_json) is not None and mentions_objects(returned):
        given[submission.job_id] = returned  # pins with the job's own id are those of its result
    await pin_inputs(session, given)
    told = told_of(plan, shape.groups, {})
    if told:
        await spread(session, submission.job_id, told)
    if submission.whole and not submission.tasks:
        await move_job(session, "start", submission.job_id, now, {"started_at": now})
        await move_job(session, "complete", submission.job_id, now, {"completed_at": now})
        session.hints.add(ENDED)
    return plan


async def insert_graph(session: Session, submission: Submission, plan: Plan, now: datetime, reserved_for: int) -> None:
    """Insert new tasks, groups and edges; tasks that wait for nothing enter the queue."""
    for task in submission.tasks:
        task.reserved_for = reserved_for
    await session.insert(
        groups, [new_rows.group_row(group, plan, submission.job_id, now) for group in submission.groups]
    )
    await session.insert(tasks, [new_rows.task_row(task, plan, submission.job_id, now) for task in submission.tasks])
    await session.insert(dependencies, new_rows.edge_rows(submission, plan))
    free = [
        task
        for task in submission.tasks
        if not plan.task_unmet[task.id] and task.id not in plan.doomed and task.id not in plan.unneeded
    ]
    after = {next_id for _, next_id in plan.met}
    changed = await bring_near(session, {task.id: task.lane for task in free if task.id in after})
    for task in free:
        task.lane = changed.get(task.id, task.lane)
    await session.insert(ready, [new_rows.ready_row(task, submission.job_id) for task in free])
    if free:
        session.hints.add(READY)


def keep_results(submission: Submission, named: Iterable[tuple[str, object]]) -> None:
    """Set `kept` on the tasks of the submission whose results are part of the job's result: their tables are kept.

    `named` are the tasks and groups that the job's result refers to, as (kind, id).
    """
    parents = {group.id: group.parent_group_id for group in submission.groups}
    outputs = {group.id: group.output_task_id for group in submission.groups}
    kept: set[object] = set()
    whole: list[int] = []
    for kind, node in named:
        if kind == "task":
            kept.add(node)
        elif kind == "group" and isinstance(node, int):
            if outputs.get(node) is None:
                whole.append(node)
            else:
                kept.add(outputs[node])
    inside = descendants(parents, whole)
    for task in submission.tasks:
        task.kept = task.id in kept or task.group_id in inside


def refuse_too_many(total: int) -> None:
    """Raise TooManyTasks if a job would have more tasks than the settings allow."""
    limit = settings().job_tasks_max
    if total > limit:
        raise TooManyTasks(what="The job would have", limit=limit, setting="AAICLICK_JOB_TASKS_MAX")


def refuse_unknown(submission: Submission, shape: Shape, known: set[int]) -> None:
    """Raise UnknownNode if something refers to an id that is neither in `shape` nor in `known`."""
    for node in (*submission.tasks, *submission.groups):
        group = node._group_id
        if group is not None and group not in shape.groups and group not in known:
            raise UnknownNode(where=str(node), kind="group", node_id=group)
    for edge in submission.edges:
        for end in (edge.previous, edge.next):
            if end.id not in shape.tasks and end.id not in shape.groups and end.id not in known:
                raise UnknownNode(where=f"{edge.previous} → {edge.next}", kind=end.kind, node_id=end.id)
