"""Clearing: tasks go back to PENDING with everything downstream of them, to run again.

Locks are taken in the usual order: the graph's row, ripples, the queue, tasks by id, groups with children first, the
job last. Only rows that are written are locked. The rest is read as committed, after the locks: a transaction that
completes a predecessor outside of the cleared tasks must lock the rows that are locked here to update their counters. A
completion that is not visible yet is therefore counted after this transaction, and counts as not complete here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, exists, null, select, update

from aaiclick.errors import Conflict, NotFound
from aaiclick.orchestration.rules.graphs.wait_counts import Waits
from aaiclick.orchestration.rules.naming.hints import ORDERS
from aaiclick.orchestration.rules.states import (
    COMPLETE_TASK,
    ENDED_JOB,
    ENDED_TASK,
    FAILED_TASK,
    LIVE_TASK,
    JobStatus,
    RunOutcome,
    TaskStatus,
)
from aaiclick.orchestration.rules.triggers import Standing, When
from aaiclick.orchestration.store.claim_ends import end_claims
from aaiclick.orchestration.store.moves.affinity import bring_near, change_lanes, lanes_after
from aaiclick.orchestration.store.moves.clear_inputs import find_to_clear, pin_again
from aaiclick.orchestration.store.moves.dependency_states import read_edges_into, read_standings
from aaiclick.orchestration.store.moves.downstream import Downstream, find_downstream
from aaiclick.orchestration.store.moves.early_endings import lock_graph
from aaiclick.orchestration.store.moves.facts import DOOM, DROWN, END, OPEN, RELEASE, SPARE, Targets
from aaiclick.orchestration.store.moves.failure_causes import error_left, find_causes
from aaiclick.orchestration.store.moves.queue import leave_delay, leave_queue, make_ready
from aaiclick.orchestration.store.moves.removed_children import remove_made
from aaiclick.orchestration.store.moves.ripples import spread
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, jobs, ripples, tasks
from aaiclick.orchestration.store.transitions import (
    COUNTS,
    lock_groups,
    lock_tasks,
    move_job,
    move_tasks,
    run_row,
)

_RESET: dict[str, Any] = {
    "epoch": tasks.c.epoch + 1,
    "generation": tasks.c.generation + 1,
    **dict.fromkeys(("attempt", "crash_count", "lost_count"), 0),
    **dict.fromkeys(("worker_id", "claimed_at", "started_at", "completed_at", "run_after"), null()),
    **dict.fromkeys(("result", "error", "log_path", "cause_id"), null()),
    **dict.fromkeys(("idempotency_key", "cache_outcome", "cached_from_id"), null()),
}
"""Resets a task as if it had never run. The epoch fences off a run that still goes on; the generation counts clears."""

_COUNTED = ("unmet_count", "open_count", "failed_count", "unended_count", "awaited_count", "amiss")
_SET_GROUP = (
    update(groups)
    .where(groups.c.id == bindparam("group"))
    .values({name: bindparam(f"new_{name}") for name in _COUNTED})
)


@dataclass(slots=True)
class Cleared:
    """The result of a clear: the tasks that were asked for come first.

    `reactivated`: the job had ended, and runs again. `rippling`: ripples were left, which are still to be worked off.
    """

    job_id: int
    task_ids: list[int] = field(default_factory=list)
    reactivated: bool = False
    rippling: bool = False


async def clear_tasks(
    session: Session, task_ids: Sequence[int], *, dry_run: bool = False, upstream: bool = False
) -> Cleared:
    """Clear these tasks of one job, whatever their status, with everything downstream of them.

    With `upstream`, also clear the tasks that made tables which are needed again and are gone. A dry run changes
    nothing. Raise NotFound if a task, or its job, is gone.
    """
    which = session.any_of(tasks.c.id, sorted(task_ids))
    found = {row.id: row.job_id for row in await session.rows(select(tasks.c.id, tasks.c.job_id).where(which))}
    for task_id in task_ids:
        if task_id not in found:
            raise NotFound(what="task", field="id", value=task_id, hint="")
    (job_id,) = set(found.values())
    known = dry_run or await lock_graph(session, job_id)
    if not known or not await session.scalar(select(exists().where(jobs.c.id == job_id))):
        hint = "Its job was deleted at the end of its retention time."
        raise NotFound(what="task", field="id", value=task_ids[0], hint=hint)
    return await _clear(session, job_id, task_ids, dry_run, upstream)


async def retry_failed_tasks(
    session: Session, job_id: int, *, dry_run: bool = False, upstream: bool = False
) -> Cleared:
    """Clear the FAILED tasks of a job with everything downstream; if the job is FAILED, also its CANCELLED tasks."""
    if not dry_run:
        await lock_graph(session, job_id)
    status = await session.scalar(select(jobs.c.status).where(jobs.c.id == job_id))
    if status is None:
        raise NotFound(what="job", field="id", value=job_id, hint="List them with: aaiclick job list")
    wanted = [TaskStatus.FAILED, TaskStatus.CANCELLED] if status == JobStatus.FAILED else [TaskStatus.FAILED]
    rows = await session.rows(select(tasks.c.id).where(tasks.c.job_id == job_id, tasks.c.status.in_(wanted)))
    return await _clear(session, job_id, [row.id for row in rows], dry_run, upstream)


async def replay(session: Session, task_id: int) -> Cleared:
    """Clear a FAILED task with everything downstream; raise Conflict for a task in any other status."""
    job_id = await session.scalar(select(tasks.c.job_id).where(tasks.c.id == task_id))
    if job_id is None:
        raise NotFound(what="task", field="id", value=task_id, hint="")
    await lock_graph(session, job_id)
    status = await session.scalar(select(tasks.c.status).where(tasks.c.id == task_id))
    if status != TaskStatus.FAILED:
        cause = "it is gone" if status is None else f"it is {status}"
        hint = "Only a task that was given up can be replayed; clear it instead."
        raise Conflict(what=f"Task {task_id}", verb="replayed", cause=cause, hint=hint)
    return await clear_tasks(session, [task_id])


async def _clear(session: Session, job_id: int, roots: Sequence[int], dry_run: bool, upstream: bool) -> Cleared:
    downstream = await find_to_clear(session, job_id, roots, upstream=upstream, dry_run=dry_run)
    cleared = Cleared(job_id, downstream.lasting)
    if downstream.made and not dry_run:
        await remove_made(session, job_id, downstream)
        held = downstream.held
        downstream = await find_downstream(session, job_id, cleared.task_ids)
        downstream.held |= held & downstream.parents.keys()  # the nodes that they waited for may be removed by now
    if cleared.task_ids and not dry_run:
        if await session.scalar(select(jobs.c.status).where(jobs.c.id == job_id)) in ENDED_JOB:
            downstream.stale = downstream.ruled  # an early end of the job may not have updated them
        clearing = _Clearing(session, job_id, downstream)
        await clearing.lock()
        await clearing.look()
        await clearing.write(cleared)
    return cleared


@dataclass(slots=True)
class _Clearing:
    """The rows that one clear changes, and the counters that they get."""

    session: Session
    job_id: int
    downstream: Downstream
    rows: Sequence[Row[Any]] = ()
    groups: Sequence[Row[Any]] = ()
    """Children before parents."""
    waits: Waits = field(default_factory=Waits)
    open_count: dict[int, int] = field(default_factory=dict)
    failed_count: dict[int, int] = field(default_factory=dict)
    unended_count: dict[int, int] = field(default_factory=dict)

    # ------------------------------------------------------------ lock

    async def lock(self) -> None:
        """Lock all rows that will be written, except the job's."""
        ids = sorted(self.downstream.tasks)
        await self._take_ripples()
        await self._unqueue(ids)
        self.rows = await lock_tasks(self.session, ids)
        await self._unqueue(ids)
        await leave_delay(self.session, [row.id for row in self.rows if row.run_after is not None])
        self.groups = await lock_groups(self.session, sorted(self.downstream.touched))

    async def _unqueue(self, ids: Sequence[int]) -> None:
        """Delete queue rows: before the tasks are locked, as a claim would, and again after, for those ready since."""
        await leave_queue(self.session, self.session.any_of(tasks.c.id, ids))

    async def _take_ripples(self) -> list[Row[Any]]:
        """Delete the ripples of endings that no longer count; return the other ripples of the job.

        Nodes that a deleted ripple had not reached yet are cleared too, and counted from scratch.
        """
        found = await self.session.rows(select(ripples).where(ripples.c.job_id == self.job_id).order_by(ripples.c.id))
        stale = [row.id for row in found if self._is_stale(row)]
        if stale:
            await self.session.run(delete(ripples).where(self.session.any_of(ripples.c.id, stale)))
        return [row for row in found if not self._is_stale(row)]

    def _is_stale(self, ripple: Row[Any]) -> bool:
        if ripple.kind in (RELEASE, DOOM, END):
            return ripple.node_id in self.downstream.tasks or ripple.node_id in self.downstream.reopened
        return ripple.kind in (OPEN, DROWN, SPARE) and ripple.node_id in self.downstream.held

    # ------------------------------------------------------------ look

    async def look(self) -> None:
        """Read what the cleared tasks and the touched groups wait for; then the ripples about these inputs.

        The order matters: an input that is complete in the first answer has its pending ripple in the second.
        """
        touched = [row.id for row in self.groups]
        self.waits.into = await read_edges_into(self.session, [*self.downstream.tasks, *touched])
        self._count_children()
        reopened = self.downstream.reopened
        before = {previous for edges in self.waits.into.values() for previous, _ in edges}
        outside = before - self.downstream.tasks.keys() - reopened
        for node, standing in (await read_standings(self.session, outside)).items():
            self.waits.stand(node, standing)
        for group in reopened:
            self.waits.stand(group, Standing.FAILING if self.failed_count[group] else Standing.OPEN)
        self.waits.rules = {
            row.id: When(row.trigger_rule)
            for row in (*self.rows, *self.groups)
            if row.trigger_rule != When.ALL_COMPLETED
        }
        for row in self.groups:
            if row.id not in self.downstream.held:  # none of its inputs is cleared: its verdict stands
                self.waits.keep(row.id, row.awaited_count, row.amiss)
        for ripple in await self._take_ripples():
            self.waits.hear(ripple.kind, ripple.node_id, ripple.node_type, ripple.after_id)
        self.waits.count_groups((row.id, row.parent_group_id) for row in reversed(self.groups))

    def _count_children(self) -> None:
        """Count the open, failed and unended children that each group will have, from the bottom up."""
        opened: Counter[int | None] = Counter()
        mended: Counter[int | None] = Counter()
        revived: Counter[int | None] = Counter()
        for row in self.rows:
            opened[row.group_id] += row.status in COMPLETE_TASK
            mended[row.group_id] += row.status in ENDED_TASK - COMPLETE_TASK
            revived[row.group_id] += row.status in ENDED_TASK
        for group in self.groups:
            self.open_count[group.id] = group.open_count + opened[group.id]
            self.failed_count[group.id] = group.failed_count - mended[group.id]
            self.unended_count[group.id] = group.unended_count + revived[group.id]
            revived[group.parent_group_id] += bool(self.unended_count[group.id]) > bool(group.unended_count)
            opened[group.parent_group_id] += bool(self.open_count[group.id]) > bool(group.open_count)
            mended[group.parent_group_id] += bool(self.failed_count[group.id]) < bool(group.failed_count)

    # ------------------------------------------------------------ write

    async def write(self, cleared: Cleared) -> None:
        """Reset the tasks, set the counters, reactivate the job; doom or skip again what other inputs doom or skip."""
        now = await self.session.now()
        reserved_for = await self._reserved_for()
        await self._reset_tasks(now, reserved_for)
        await pin_again(self.session, self.job_id, self.downstream.tasks)
        await self._open_gates()
        await self._write_groups()
        cleared.reactivated = await self._write_job(now, reserved_for)
        await self._change_lanes()
        await make_ready(self.session, sorted(self.downstream.tasks))
        found = {row.id: self.waits.doomed_by(row.id, row.group_id) for row in self.rows}
        doomed = {task: previous for task, previous in found.items() if previous is not None}
        spared = {row.id for row in self.rows if self.waits.is_spared(row.id, row.group_id)}
        if doomed or spared:
            causes = await find_causes(self.session, self.job_id, doomed)
            told = Targets(doomed=set(doomed), unneeded=spared, causes=causes)
            cleared.rippling = await spread(self.session, self.job_id, told)

    async def _reset_tasks(self, now: datetime, reserved_for: int) -> None:
        session = self.session
        await move_tasks(session, "clear", self.rows, now, {**_RESET, "reserved_for": reserved_for})
        live = [row for row in self.rows if row.status in LIVE_TASK]
        await end_claims(session, [run_row(row, RunOutcome.CLEARED, now) for row in live])
        if live:
            session.hints.add(ORDERS)
        counts: dict[tuple[int, bool, int, bool], list[int]] = {}
        for row in self.rows:
            gated, verdict = self.waits.is_gated(row.id, row.group_id, row.gated), self.waits.verdict(row.id)
            facts = (verdict.unmet + gated, gated, verdict.awaited, verdict.amiss)
            counts.setdefault(facts, []).append(row.id)
        for (unmet, gated, awaited, amiss), ids in sorted(counts.items()):
            which = session.any_of(tasks.c.id, ids)
            new = {"unmet_count": unmet, "gated": gated, "awaited_count": awaited, "amiss": amiss}
            await session.run(update(tasks).where(which).values(**new))
        again = session.any_of(dependencies.c.previous_id, sorted([*self.downstream.tasks, *self.downstream.reopened]))
        await session.run(update(dependencies).where(again, dependencies.c.met.is_(True)).values(met=False))

    async def _change_lanes(self) -> None:
        """Let the tasks change to lanes that name the node of their last attempt, and of inputs that are complete.

        Where an attempt failed, its lane names that already; one that was stopped has not failed.
        """
        ran = [row for row in self.rows if row.worker_id is not None and row.status not in FAILED_TASK]
        stopped = [row for row in ran if row.status != TaskStatus.COMPLETED]
        lane_of = {row.id: row.lane for row in self.rows}
        changed = await lanes_after(self.session, [row for row in ran if row not in stopped], failed=False)
        changed |= await lanes_after(self.session, stopped, failed=None)
        await change_lanes(self.session, changed)
        await bring_near(self.session, lane_of | changed)

    async def _reserved_for(self) -> int:
        """Return the worker for which the tasks are reserved; 0 for all.

        A job that has ended loses its reservation: the `job_test` that made it has ended too.
        """
        kept = await self.session.first(select(jobs.c.reserved_for, jobs.c.status).where(jobs.c.id == self.job_id))
        assert kept is not None, "a job whose graph is locked exists"
        return 0 if kept.status in ENDED_JOB else int(kept.reserved_for)

    async def _open_gates(self) -> None:
        """In groups that turn out to be open, ungate the tasks that have ended; the cleared ones have been reset."""
        closed = {row.id for row in self.groups if row.unmet_count and row.id in self.downstream.stale}
        if opened := sorted(closed - self.waits.closed):
            which = (self.session.any_of(tasks.c.group_id, opened), tasks.c.gated.is_(True))
            free = {"gated": False, "unmet_count": tasks.c.unmet_count - 1}
            await self.session.run(update(tasks).where(*which).values(**free))

    async def _write_groups(self) -> None:
        new = [
            {
                "group": row.id,
                "new_unmet_count": self.waits.unmet_groups[row.id],
                "new_open_count": self.open_count[row.id],
                "new_failed_count": self.failed_count[row.id],
                "new_unended_count": self.unended_count[row.id],
                "new_awaited_count": self.waits.verdict(row.id).awaited,
                "new_amiss": self.waits.verdict(row.id).amiss,
            }
            for row in self.groups
        ]
        changed = [
            counts
            for row, counts in zip(self.groups, new, strict=True)
            if any(counts[f"new_{name}"] != row._mapping[name] for name in _COUNTED)
        ]
        await self.session.run_many(_SET_GROUP, changed)

    async def _write_job(self, now: datetime, reserved_for: int) -> bool:
        """Correct the job's counters; if it had ended, let it run again from now on, and return True."""
        job = await self.session.first(
            select(jobs.c.status, jobs.c.failed_critical, jobs.c.started_at, jobs.c.completed_at)
            .where(jobs.c.id == self.job_id)
            .with_for_update(key_share=True)
        )
        assert job is not None, "a job whose graph is locked exists"
        less = self._less()
        values: dict[str, Any] = {name: jobs.c[name] - less[name] for name in COUNTS}
        ended = job.status in ENDED_JOB
        if ended or less["failed_critical"]:
            stays = job.failed_critical > less["failed_critical"]
            values["error"] = await error_left(self.session, self.job_id) if stays else None
        if ended:
            values |= {"started_at": now, "completed_at": None, "reserved_for": reserved_for}
            return await move_job(self.session, "reactivate", self.job_id, now, values, _took(job))
        await self.session.run(update(jobs).where(jobs.c.id == self.job_id).values(**values))
        return False

    def _less(self) -> Counter[str]:
        """Return by how much each of the job's counters falls."""
        less: Counter[str] = Counter()
        for row in self.rows:
            less["open_tasks"] -= row.status in ENDED_TASK
            less["completed_tasks"] += row.status == TaskStatus.COMPLETED
            less["skipped_tasks"] += row.status == TaskStatus.SKIPPED
            less["failed_tasks"] += row.status == TaskStatus.FAILED
            less["failed_critical"] += row.status in FAILED_TASK and row.critical
        return less


def _took(job: Row[Any]) -> str | None:
    """Return the seconds from the job's start to its end, for the event: metrics read them there. None if unknown."""
    if job.started_at is None or job.completed_at is None:
        return None
    return f"{(job.completed_at - job.started_at).total_seconds():.6f}"
