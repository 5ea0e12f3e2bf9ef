"""What must hold after every commit, computed from scratch and compared with what the store maintains.

`violations(session)` reads all rows and says, in words, what is wrong: an empty list when all is well. While ripples
are left, what they have not told yet is counted as not told; `at_rest=True` says that none may be left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Row, select

from aaiclick.orchestration.rules.states import (
    CACHE_HIT,
    CACHE_MISS,
    ENDED_JOB,
    ENDED_TASK,
    FAILED_TASK,
    JOB_MOVES,
    LATE_REPORT,
    LIVE_TASK,
    TASK_MOVES,
)
from aaiclick.orchestration.store import tables
from aaiclick.orchestration.store.session import Session
from tests.support.picture import Picture

_T, _G = tables.tasks.c, tables.groups.c
_TASK = (_T.id, _T.job_id, _T.group_id, _T.name, _T.status, _T.epoch, _T.worker_id, _T.unmet_count, _T.gated)
_TASK_MORE = (_T.dependents_count, _T.run_after, _T.reserved_for, _T.lane, _T.priority, _T.critical, _T.cause_id)
_TASK_RULE = (_T.trigger_rule, _T.awaited_count, _T.amiss)


Check = Callable[[Picture], Iterator[str]]


async def violations(session: Session, *, at_rest: bool = False) -> list[str]:
    """What is wrong, in words.

    The tables are read one after the other. What looks wrong is looked at again until two pictures are the same, or a
    report that was committed between two of the statements would be taken for half a report.
    """
    picture = await look(session)
    found = violations_in(picture, at_rest=at_rest)
    for _ in range(LOOKS_MAX):
        again = await look(session) if found else picture
        if again.rows == picture.rows:
            break
        picture, found = again, violations_in(again, at_rest=at_rest)
    return found


LOOKS_MAX = 50


def violations_in(picture: Picture, *, at_rest: bool = False) -> list[str]:
    """What is wrong with rows that were read."""
    found = [f"{check.__name__}: {what}" for check in CHECKS for what in check(picture)]
    if at_rest:
        found += [f"at rest: a ripple is left: {row}" for row in picture.rows["ripples"]]
    return found


async def look(session: Session) -> Picture:
    """Read all that the checks need."""
    chosen: dict[str, Any] = {"tasks": select(*_TASK, *_TASK_MORE, *_TASK_RULE).order_by(_T.id)}
    chosen["events"] = select(tables.events).order_by(tables.events.c.id)
    for table in (tables.jobs, tables.groups, tables.dependencies, tables.ready, tables.delayed, tables.claims):
        chosen[table.name] = select(table)
    chosen["ripples"] = select(tables.ripples)
    runs = tables.runs.c
    facts = (runs.claimed_at, runs.started_at, runs.ended_at, runs.worker_id, runs.late)
    chosen["runs"] = select(runs.task_id, runs.epoch, runs.outcome, *facts)
    return Picture({name: list(await session.rows(choice)) for name, choice in chosen.items()})


# ---------------------------------------------------------------- counters


def what_tasks_wait_for(now: Picture) -> Iterator[str]:
    for task in now.rows["tasks"]:
        if task.trigger_rule != "all_completed" and task.status in ENDED_TASK | LIVE_TASK:
            continue  # what it was told before it began, or ended by other hands, is its own affair
        expected = now.unmet(task.id) + task.gated
        if task.awaited_count != now.awaited(task.id):
            yield f"{_name(task)} has awaited_count {task.awaited_count}, counted {now.awaited(task.id)}"
        if task.unmet_count != expected:
            yield f"{_name(task)} has unmet_count {task.unmet_count}, counted {expected}"
        opening = now.opening.get(task.group_id)
        untold = opening is not None and task.id > opening.after_id
        if task.gated != (task.group_id in now.closed) and not untold:
            yield f"{_name(task)} has gated {task.gated}, its group is {'' if task.gated else 'not '}open"


def what_groups_count(now: Picture) -> Iterator[str]:
    for group in now.rows["groups"]:
        children = now.inside[group.id]
        expected = {
            "unmet_count": now.unmet(group.id) + (group.parent_group_id in now.closed),
            "open_count": sum(child not in now.complete for child in children),
            "unended_count": sum(child not in now.ended for child in children),
            "awaited_count": now.awaited(group.id),
            "failed_count": sum(child in now.failed for child in children),
            "depth": len(now.around(group.parent_group_id)),
        }
        if now.is_over(group):
            del expected["unmet_count"], expected["awaited_count"]
        for name, count in expected.items():
            kept = group._mapping[name]
            if kept != count:
                yield f"{_name(group)} has {name} {kept}, counted {count}"


def how_many_depend(now: Picture) -> Iterator[str]:
    following = Counter(edge.previous_id for edge in now.edges)
    for node in (*now.tasks.values(), *now.groups.values()):
        if node.dependents_count != following[node.id]:
            yield f"{_name(node)} has dependents_count {node.dependents_count}, counted {following[node.id]}"


def what_is_marked_as_met(now: Picture) -> Iterator[str]:
    for edge in now.edges:
        ended = edge.previous_id in now.ended and now.rule(edge.next_id) != "all_completed"
        if edge.met and edge.previous_id not in now.complete and not ended:  # nobody would be told when it completes
            yield f"the edge {edge.previous_id} → {edge.next_id} is marked as met"


def what_jobs_count(now: Picture) -> Iterator[str]:
    by_job: dict[int, Counter[str]] = defaultdict(Counter)
    for task in now.rows["tasks"]:
        counts = by_job[task.job_id]
        counts["total_tasks"] += 1
        counts["open_tasks"] += task.status not in ENDED_TASK
        counts["completed_tasks"] += task.status == "completed"
        counts["failed_tasks"] += task.status == "failed"
        counts["skipped_tasks"] += task.status == "skipped"
        counts["failed_critical"] += task.status in FAILED_TASK and task.critical
    for job in now.rows["jobs"]:
        for name in (
            "total_tasks",
            "open_tasks",
            "completed_tasks",
            "failed_tasks",
            "failed_critical",
            "skipped_tasks",
        ):
            if job._mapping[name] != by_job[job.id][name]:
                yield f"job {job.id} has {name} {job._mapping[name]}, counted {by_job[job.id][name]}"


# ---------------------------------------------------------------- queues


def who_is_in_the_ready_queue(now: Picture) -> Iterator[str]:
    places: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for row in now.rows["ready"]:
        places[row.task_id].append((row.reserved_for, row.lane, row.rank, row.job_id))
    for task in now.rows["tasks"]:
        may = task.status == "pending" and not task.unmet_count and task.run_after is None
        expected = [(task.reserved_for, task.lane, -task.priority, task.job_id)] if may else []
        if places.pop(task.id, []) != expected:
            yield f"{_name(task)} ({task.status}, unmet {task.unmet_count}) is {'not ' if may else ''}in the queue"
    yield from (f"task {unknown} is in the queue and does not exist" for unknown in places)


def who_is_delayed(now: Picture) -> Iterator[str]:
    kept = Counter((row.task_id, row.run_after) for row in now.rows["delayed"])
    due = Counter((row.id, row.run_after) for row in now.rows["tasks"] if row.status == "pending" and row.run_after)
    yield from (f"task {task} is delayed until {at} and should not be" for task, at in kept - due)
    yield from (f"task {task} should be delayed until {at}" for task, at in due - kept)


def who_is_claimed(now: Picture) -> Iterator[str]:
    kept = Counter((row.task_id, row.epoch, row.worker_id) for row in now.rows["claims"])
    live = Counter((row.id, row.epoch, row.worker_id) for row in now.rows["tasks"] if row.status in LIVE_TASK)
    yield from (f"claim {claim} belongs to no live task" for claim in kept - live)
    yield from (f"live task (id, epoch, worker) {claim} has no claim" for claim in live - kept)


# ---------------------------------------------------------------- order


def who_began_too_early(now: Picture) -> Iterator[str]:
    begun = LIVE_TASK | {"completed", "failed"}
    for task in now.rows["tasks"]:
        if task.status in begun:
            for node in (task.id, *now.around(task.group_id)):
                if now.unmet(node) and not now.rule(node).startswith("one_"):
                    yield f"{_name(task)} is {task.status}, and {node} waits"


def who_waits_in_vain(now: Picture) -> Iterator[str]:
    for task in now.rows["tasks"]:
        if task.status == "pending" and task.id in now.doomed and task.job_id not in now.dooming:
            yield f"{_name(task)} is pending, and what it waits for has failed"


def what_is_to_blame(now: Picture) -> Iterator[str]:
    for task in now.rows["tasks"]:
        if (task.cause_id is None) != (task.status != "upstream_failed"):
            yield f"{_name(task)} is {task.status} because of {task.cause_id}"


def when_jobs_end(now: Picture) -> Iterator[str]:
    left: dict[int, int] = defaultdict(int)
    known: set[int] = set()
    for task in now.rows["tasks"]:
        known.add(task.job_id)
        left[task.job_id] += task.status not in ENDED_TASK
    for job in now.rows["jobs"]:
        ended = job.status in ENDED_JOB
        should = job.id in known and not left[job.id]
        if ended != should and not (job.status == "cancelled" and job.id not in known):
            yield f"job {job.id} is {job.status} with {left[job.id]} tasks left"
        if ended != (job.completed_at is not None):
            yield f"job {job.id} is {job.status} with completed_at {job.completed_at}"
        late = job.status == "failed" and job.error.startswith("JobTimeout: ")
        if job.status in ("completed", "failed") and (job.status == "failed") != bool(job.failed_critical or late):
            yield f"job {job.id} is {job.status} with {job.failed_critical} critical failures"
        if job.failed_critical and not job.error:
            yield f"job {job.id} does not say what failed"


# ---------------------------------------------------------------- history


def what_the_events_of_tasks_tell(now: Picture) -> Iterator[str]:
    told: dict[int, list[Row[Any]]] = defaultdict(list)
    for event in now.rows["events"]:
        if event.task_id is not None:
            told[event.task_id].append(event)
    for task in now.rows["tasks"]:
        status, epoch = "pending", 0
        for event in told[task.id]:
            if event.move in (LATE_REPORT, CACHE_HIT, CACHE_MISS):
                continue
            move = TASK_MOVES.get(event.move)
            if move is None or status not in move.sources or event.status != move.target:
                yield f"{_name(task)} was {status} and made {event.move} to {event.status}"
            if event.epoch < epoch or (event.move == "claim" and event.epoch == epoch):
                yield f"{_name(task)} made {event.move} with epoch {event.epoch} after {epoch}"
            status, epoch = event.status, event.epoch
        if status != task.status:
            yield f"{_name(task)} is {task.status}, its last event says {status}"
        if task.epoch < epoch:
            yield f"{_name(task)} has epoch {task.epoch}, its last event {epoch}"


def what_the_events_of_jobs_tell(now: Picture) -> Iterator[str]:
    told: dict[int, list[Row[Any]]] = defaultdict(list)
    for event in now.rows["events"]:
        if event.task_id is None:
            told[event.job_id].append(event)
    for job in now.rows["jobs"]:
        status = "pending"
        if [event.move for event in told[job.id][:1]] != ["create"]:
            yield f"job {job.id} begins with {told[job.id][:1]}"
        for event in told[job.id][1:]:
            if event.move == "grow" or (event.move == "repair" and event.status == status):
                continue
            move = JOB_MOVES.get(event.move)
            if move is None or status not in move.sources or event.status != move.target:
                yield f"job {job.id} was {status} and made {event.move} to {event.status}"
            status = event.status
        if status != job.status:
            yield f"job {job.id} is {job.status}, its last event says {status}"


def what_the_runs_tell(now: Picture) -> Iterator[str]:
    kept = {row.id for row in now.rows["jobs"]}
    claimed = {(row.task_id, row.epoch) for row in now.rows["events"] if row.move == "claim" and row.job_id in kept}
    ended = {(row.task_id, row.epoch): row.outcome for row in now.rows["runs"]}
    live = {(row.id, row.epoch) for row in now.rows["tasks"] if row.status in LIVE_TASK}
    yield from (f"run {run} was never claimed" for run in ended.keys() - claimed)
    yield from (f"claim {run} is neither live nor ended" for run in claimed - ended.keys() - live)
    yield from (f"run {run} is live and has ended" for run in live & ended.keys())
    cleared = {row.task_id: row.epoch for row in now.rows["events"] if row.move == "clear"}  # the last one counts
    completed = Counter(
        task for (task, epoch), outcome in ended.items() if outcome == "completed" and epoch > cleared.get(task, -1)
    )
    for task in now.rows["tasks"]:
        if completed[task.id] != (task.status == "completed"):
            yield f"{_name(task)} is {task.status} with {completed[task.id]} completed runs"
    for run in now.rows["runs"]:
        if not run.claimed_at <= run.started_at <= run.ended_at:
            yield f"run {run} ended before it began"


def what_came_late(now: Picture) -> Iterator[str]:
    """A run that was taken from its worker, and reported all the same, has one event, and no other has."""
    late = {(row.task_id, row.epoch): row for row in now.rows["runs"] if row.late}
    told = Counter((row.task_id, row.epoch, row.worker_id) for row in now.rows["events"] if row.move == LATE_REPORT)
    yield from (f"run {run} was late {count} times" for run, count in told.items() if count > 1)
    for run, row in late.items():
        if row.outcome in ("completed", "failed", "crashed"):
            yield f"run {run} was late and is {row.outcome}"
        if (*run, row.worker_id) not in told:
            yield f"run {run} was late, and nothing tells of it"
    kept = {row.task_id for row in now.rows["runs"]}
    yield from (f"run {run} is told to be late, and was not" for run in told if run[0] in kept and run[:2] not in late)


def _name(node: Row[Any]) -> str:
    return f"{'task' if 'group_id' in node._mapping else 'group'} {node.name!r} {node.id}"


CHECKS: tuple[Check, ...] = (
    what_tasks_wait_for,
    what_groups_count,
    how_many_depend,
    what_is_marked_as_met,
    what_jobs_count,
    who_is_in_the_ready_queue,
    who_is_delayed,
    who_is_claimed,
    who_began_too_early,
    who_waits_in_vain,
    what_is_to_blame,
    when_jobs_end,
    what_the_events_of_tasks_tell,
    what_the_events_of_jobs_tell,
    what_the_runs_tell,
    what_came_late,
)
