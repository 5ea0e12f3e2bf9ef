"""Recounts a job from scratch, and corrects what is wrong.

Nothing should ever be wrong: every transaction keeps the counters. This is for changes that did not come from aaiclick,
and each finding is worth reading. Ripples, tasks, groups and the job are locked, so that the counts are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Table, func, select, update

from aaiclick.orchestration.rules.graphs.wait_counts import Waits
from aaiclick.orchestration.rules.naming.hints import ENDED
from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK, FAILED_TASK, LIVE_TASK, JobStatus, TaskStatus
from aaiclick.orchestration.rules.triggers import Standing, When
from aaiclick.orchestration.store.moves.dependency_states import task_standing
from aaiclick.orchestration.store.moves.early_endings import cancel_tasks, lock_graph
from aaiclick.orchestration.store.moves.facts import DOOM, DROWN, SPARE, Targets
from aaiclick.orchestration.store.moves.failure_causes import error_left, find_causes
from aaiclick.orchestration.store.moves.queue_repair import repair_queue
from aaiclick.orchestration.store.moves.ripples import spread
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, delayed, dependencies, groups, jobs, ready, ripples, tasks
from aaiclick.orchestration.store.transitions import job_outcome, lock_groups, lock_tasks, move_job, note_repair

WORDS_MAX = 200
"""Maximum number of findings in an event; there may be one for each task."""


async def stuck_jobs(session: Session, limit: int) -> list[int]:
    """Return open jobs in which nothing is ready, delayed, claimed or left as a ripple: they would never end.

    The claims are read once; of a job without any, its tasks are read up to the first that is ready or delayed.
    """
    queued = select(ready.c.task_id).where(
        ready.c.reserved_for == tasks.c.reserved_for,
        ready.c.lane == tasks.c.lane,
        ready.c.rank == -tasks.c.priority,
        ready.c.job_id == tasks.c.job_id,
        ready.c.task_id == tasks.c.id,
    )
    waits = select(delayed.c.task_id).where(delayed.c.run_after == tasks.c.run_after, delayed.c.task_id == tasks.c.id)
    free = (tasks.c.job_id == jobs.c.id, tasks.c.status == TaskStatus.PENDING, tasks.c.unmet_count == 0)
    held = (
        select(tasks.c.job_id).join(claims, tasks.c.id == claims.c.task_id).where(tasks.c.status.in_(sorted(LIVE_TASK)))
    )
    rows = await session.rows(
        select(jobs.c.id)
        .where(
            jobs.c.status.in_(sorted(set(JobStatus) - ENDED_JOB)),
            jobs.c.total_tasks > 0,
            jobs.c.id.not_in(held),
            ~select(ripples.c.id).where(ripples.c.job_id == jobs.c.id).exists(),
            ~select(tasks.c.id).where(*free, queued.exists() | waits.exists()).exists(),
        )
        .order_by(jobs.c.id)
        .limit(limit)
    )
    return [row.id for row in rows]


async def repair_job(session: Session, job_id: int) -> list[str]:
    """Recount a job and correct what is wrong; return the findings in words, none if all was well."""
    if not await lock_graph(session, job_id):
        return []
    repair = _Repair(session, job_id)
    await repair.lock()
    await repair.look()
    await repair.mend()
    return repair.words


@dataclass(slots=True)
class _Repair:
    session: Session
    job_id: int
    tasks: Sequence[Row[Any]] = ()
    groups: Sequence[Row[Any]] = ()
    """Children before parents."""
    edges: Sequence[Row[Any]] = ()
    ripples: Sequence[Row[Any]] = ()
    waits: Waits = field(default_factory=Waits)
    open_count: Counter[int | None] = field(default_factory=Counter)
    failed_count: Counter[int | None] = field(default_factory=Counter)
    unended_count: Counter[int | None] = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)

    # ------------------------------------------------------------ lock and look

    async def lock(self) -> None:
        """Lock the ripples, tasks and groups of the job."""
        mine = ripples.c.job_id == self.job_id
        await self.session.rows(select(ripples.c.id).where(mine).order_by(ripples.c.id).with_for_update())
        self.tasks = await lock_tasks(self.session, await self._ids(tasks))
        self.groups = await lock_groups(self.session, await self._ids(groups))

    async def _ids(self, table: Table) -> list[int]:
        return [row.id for row in await self.session.rows(select(table.c.id).where(table.c.job_id == self.job_id))]

    async def look(self) -> None:
        """Read the job's graph; count anew what is complete, what failed, and what each node waits for."""
        waits = self.waits
        self.edges = await self.session.rows(select(dependencies).where(dependencies.c.job_id == self.job_id))
        self.ripples = await self.session.rows(select(ripples).where(ripples.c.job_id == self.job_id))
        for edge in self.edges:
            waits.into.setdefault(edge.next_id, []).append((edge.previous_id, edge.met))
        for ripple in self.ripples:
            waits.hear(ripple.kind, ripple.node_id, ripple.node_type, ripple.after_id)
        for row in (*self.tasks, *self.groups):
            if row.trigger_rule != When.ALL_COMPLETED:
                waits.rules[row.id] = When(row.trigger_rule)
        for task in self.tasks:
            waits.stand(task.id, task_standing(task.status))
            self._count(task.group_id, task.id, task.status in ENDED_TASK)
        for group in self.groups:
            ended = not self.unended_count[group.id]
            if not self.open_count[group.id]:
                waits.stand(group.id, Standing.MET)
            elif self.failed_count[group.id]:
                waits.stand(group.id, Standing.FAILED if ended else Standing.FAILING)
            if ended:
                waits.keep(group.id, group.awaited_count, group.amiss)
            self._count(group.parent_group_id, group.id, ended)
        waits.count_groups((group.id, group.parent_group_id) for group in reversed(self.groups))

    def _count(self, container: int | None, node: int, ended: bool) -> None:
        self.unended_count[container] += not ended
        self.open_count[container] += node not in self.waits.complete
        self.failed_count[container] += node in self.waits.failed

    # ------------------------------------------------------------ mend

    async def mend(self) -> None:
        """Correct the edges and the counters of nodes, then the queue and the claims, then the job."""
        await self._mend_edges()
        dependents = Counter(edge.previous_id for edge in self.edges)
        await self._set(tasks, self.tasks, dict(self._task_counts(dependents)))
        await self._set(groups, self.groups, dict(self._group_counts(dependents)))
        self.words += await repair_queue(self.session, self.job_id, [task.id for task in self.tasks])
        await self._mend_job()

    async def _mend_edges(self) -> None:
        """Unmark edges that are `met` by mistake: the nodes that wait would never be told of these inputs."""
        wrong = [edge for edge in self.edges if edge.met and not self._may_be_met(edge)]
        for edge in wrong:
            ends = (dependencies.c.previous_id == edge.previous_id, dependencies.c.next_id == edge.next_id)
            await self.session.run(update(dependencies).where(*ends).values(met=False))
            self.words.append(f"the dependency of {edge.next_id} on {edge.previous_id} was marked as met")

    def _may_be_met(self, edge: Row[Any]) -> bool:
        """Return whether the previous node is complete, or has ended and the next one has a rule of its own."""
        waits = self.waits
        ended = edge.previous_id in waits.failed - waits.failing and edge.next_id in waits.rules
        return ended or edge.previous_id in waits.complete

    def _task_counts(self, dependents: Mapping[int, int]) -> Iterator[tuple[int, dict[str, int]]]:
        for task in self.tasks:
            gated = self.waits.is_gated(task.id, task.group_id, task.gated)
            counts = {"gated": gated, "dependents_count": dependents.get(task.id, 0)}
            yield task.id, counts | self._inputs(task, gated, task.status not in ENDED_TASK)

    def _group_counts(self, dependents: Mapping[int, int]) -> Iterator[tuple[int, dict[str, int]]]:
        for group in self.groups:
            yield (
                group.id,
                {
                    "open_count": self.open_count[group.id],
                    "unended_count": self.unended_count[group.id],
                    "failed_count": self.failed_count[group.id],
                    "dependents_count": dependents.get(group.id, 0),
                    **self._inputs(
                        group, group.parent_group_id in self.waits.closed, bool(self.unended_count[group.id])
                    ),
                },
            )

    def _inputs(self, row: Row[Any], gated: bool, matters: bool) -> dict[str, int]:
        """Return the counters of what a node waits for; they are left alone if it has ended, under a rule of its own.

        Something else than its inputs may have ended such a node, as a cancel does.
        """
        if row.id in self.waits.rules and not matters:
            return {}
        verdict = self.waits.verdict(row.id)
        return {"unmet_count": verdict.unmet + gated, "awaited_count": verdict.awaited, "amiss": verdict.amiss}

    async def _set(self, table: Table, rows: Sequence[Row[Any]], counts: Mapping[int, dict[str, int]]) -> None:
        """Write the counters that differ from `counts`, and add each to the findings."""
        for row in rows:
            wrong = {name: count for name, count in counts[row.id].items() if getattr(row, name) != count}
            if wrong:
                await self.session.run(update(table).where(table.c.id == row.id).values(**wrong))
            what = f"{table.name[:-1]} {row.id}"
            self.words += [f"{what} had {name} {getattr(row, name)}, not {count}" for name, count in wrong.items()]

    # ------------------------------------------------------------ the job

    async def _mend_job(self) -> None:
        """Correct the job's counters and its status; then doom and skip the tasks that had not been told."""
        session, now = self.session, await self.session.now()
        mine = jobs.c.id == self.job_id
        job = await session.first(select(jobs).where(mine).with_for_update(key_share=True))
        assert job is not None, "a job whose graph is locked exists"
        counts = self._job_counts()
        await self._set(jobs, [job], {self.job_id: counts})
        doomed = {} if job.status in ENDED_JOB else self._doomed()
        self.words += [f"task {task} waits for something that has failed, and had not been told" for task in doomed]
        spared = set() if job.status in ENDED_JOB else self._spared()
        self.words += [f"task {task} is not needed, and had not been told" for task in sorted(spared)]
        left, ended = counts["open_tasks"], job.status in ENDED_JOB
        is_off = bool(self.tasks) and ended == bool(left)
        if is_off:
            self.words.append(f"the job was {job.status} with {left} tasks left")
        if self.words:
            await note_repair(session, self.job_id, job.status, now, _shortened(self.words))
        if is_off:
            all_completed = counts["completed_tasks"] + counts["skipped_tasks"] == counts["total_tasks"]
            move = await job_outcome(session, self.job_id, counts["failed_critical"], all_completed)
            await self._mend_end(job.status, move, now)
        if doomed or spared:
            causes = await find_causes(session, self.job_id, doomed)
            await spread(session, self.job_id, Targets(doomed=set(doomed), unneeded=spared, causes=causes))

    async def _mend_end(self, status: str, move: str, now: datetime) -> None:
        """End a job without open tasks; reactivate a completed one with some; cancel those of other ended jobs."""
        if status == JobStatus.COMPLETED:
            await move_job(self.session, "reactivate", self.job_id, now, {"completed_at": None})
        elif status in ENDED_JOB:
            await cancel_tasks(self.session, self.job_id)
            await self.session.run(update(jobs).where(jobs.c.id == self.job_id).values(open_tasks=0))
        else:
            if status == JobStatus.PENDING:
                await move_job(self.session, "start", self.job_id, now, {"started_at": now})
            facts: dict[str, Any] = {"completed_at": now}
            if move == "fail":
                facts["error"] = func.coalesce(jobs.c.error, await error_left(self.session, self.job_id))
            await move_job(self.session, move, self.job_id, now, facts)
            self.session.hints.add(ENDED)

    def _job_counts(self) -> dict[str, int]:
        failed = [task for task in self.tasks if task.status in FAILED_TASK]
        return {
            "total_tasks": len(self.tasks),
            "open_tasks": sum(task.status not in ENDED_TASK for task in self.tasks),
            "completed_tasks": sum(task.status == TaskStatus.COMPLETED for task in self.tasks),
            "skipped_tasks": sum(task.status == TaskStatus.SKIPPED for task in self.tasks),
            "failed_tasks": sum(task.status == TaskStatus.FAILED for task in failed),
            "failed_critical": sum(task.critical for task in failed),
        }

    def _spared(self) -> set[int]:
        """Return the PENDING tasks that are not needed; none while a ripple may yet tell them."""
        if any(ripple.kind == SPARE for ripple in self.ripples):
            return set()
        waiting = [task for task in self.tasks if task.status == TaskStatus.PENDING]
        return {task.id for task in waiting if self.waits.is_spared(task.id, task.group_id)}

    def _doomed(self) -> dict[int, int]:
        """Return the PENDING tasks that wait in vain, each with what failed; none while a ripple may yet tell them."""
        if any(ripple.kind in (DOOM, DROWN) for ripple in self.ripples):
            return {}
        waiting = [task for task in self.tasks if task.status == TaskStatus.PENDING]
        found = {task.id: self.waits.doomed_by(task.id, task.group_id) for task in waiting}
        return {task: previous for task, previous in found.items() if previous is not None}


def _shortened(words: Sequence[str]) -> str:
    more = [f"… and {len(words) - WORDS_MAX} more"] if len(words) > WORDS_MAX else []
    return "; ".join([*words[:WORDS_MAX], *more])
