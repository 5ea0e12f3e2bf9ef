"""What follows from the end of tasks: counters fall, tasks become ready, are doomed or skipped, groups and jobs end.

It works in waves, each a few statements whatever its width: find the nodes that wait for what has just ended (the ended
rows are locked by now, so no edge can be added unseen), lock them, write their counters, and go on with what ended by
that. What is too much for one transaction is left as rows of `ripples`, and worked off in bounded steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Integer, Row, Select, bindparam, delete, select, update

from aaiclick.orchestration.rules.states import COMPLETE_TASK, TASK_MOVES, TaskStatus
from aaiclick.orchestration.rules.triggers import ONE, Fate, When, learn
from aaiclick.orchestration.store.dialects.contract import Dialect, EndedTask
from aaiclick.orchestration.store.moves.affinity import ready_near_inputs
from aaiclick.orchestration.store.moves.counters import lock_gated, shift
from aaiclick.orchestration.store.moves.early_endings import stop_job
from aaiclick.orchestration.store.moves.facts import (
    DOOM,
    DROWN,
    END,
    OPEN,
    RELEASE,
    SPARE,
    CountNew,
    Sources,
    Tally,
    Targets,
    postpone,
)
from aaiclick.orchestration.store.moves.failure_causes import error_of, explain, find_causes_before, first_errors
from aaiclick.orchestration.store.moves.queue import leave_delay
from aaiclick.orchestration.store.object_tables.references import free_pins
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, ripples, tasks
from aaiclick.orchestration.store.transitions import STOP, count_in_job, doom_tasks, lock_groups, lock_tasks, skip_tasks

STEP = 2_000
"""How many nodes one transaction may tell; more are left to ripples."""


async def settle(
    session: Session,
    ended: Sequence[EndedTask],
    errors: dict[int, str] | None = None,
    more: Mapping[int, Counter[str]] | None = None,
    told: Mapping[int, Targets] | None = None,
) -> bool:
    """Propagate the end of these tasks through the graph; return whether ripples were left for later.

    `more` is added to the counters of these jobs in the same update, with what follows from `told`, which is told to
    other nodes: a job must not be without open tasks in between.
    """
    tally = Tally(errors=errors or {}, left=STEP)
    for job_id, counts in (more or {}).items():
        tally.counts[job_id] = Counter(counts)
    targets = Targets()
    for job_id, concerned in (told or {}).items():
        targets.add(concerned)
        tally.job_of |= dict.fromkeys(concerned.drowned | concerned.spared | concerned.told(), job_id)
    return await _spread(session, _begin(ended, tally), targets, tally)


async def spread(session: Session, job_id: int, targets: Targets, count_new: CountNew | None = None) -> bool:
    """Tell these nodes of the job what concerns them, with all that follows; return whether ripples were left."""
    tally = Tally(left=STEP, count_new=count_new)
    tally.job_of = dict.fromkeys(targets.drowned | targets.spared | targets.told(), job_id)
    return await _spread(session, Sources(), targets, tally)


def _begin(ended: Sequence[EndedTask], tally: Tally) -> Sources:
    sources = Sources()
    tally.add(ended)
    for task in ended:
        if not task.dependents_count and task.group_id is None:
            continue
        complete = task.status in COMPLETE_TASK
        if task.dependents_count:
            (sources.release if complete else sources.doom)[task.id] = task.dependents_count
            tally.job_of[task.id] = task.job_id
            if task.status == TaskStatus.SKIPPED:
                sources.skipped.add(task.id)
        if task.group_id is not None:
            (sources.opened if complete else sources.failed)[task.group_id] += 1
            sources.finished[task.group_id] += 1
            tally.job_of[task.group_id] = task.job_id
        if not complete:
            tally.blame(task.id, task.id)
            tally.blame(task.group_id, tally.cause_of[task.id])
    return sources


async def _spread(session: Session, sources: Sources, targets: Targets, tally: Tally) -> bool:
    postponed: list[dict[str, Any]] = []
    tally.cause_of |= targets.causes
    while sources or targets:
        postponed += await postpone(session, sources, tally)
        await _look(session, sources, targets, tally)
        sources = await _write(session, sources, targets, tally)
        targets = Targets()
    await session.insert(ripples, postponed)
    rippling = bool(postponed)
    if tally.count_new is not None:
        await tally.count_new()
    for job_id in sorted(tally.counts):
        rippling |= await count_in_job(session, job_id, tally.counts[job_id], tally.errors.get(job_id))
    return rippling


# ---------------------------------------------------------------- postponed ripples


async def work_one_ripple(session: Session, job_id: int | None = None) -> bool:
    """Do the next step of one postponed ripple; return False if none is left, or others have locked all of them."""
    choice = select(ripples).order_by(ripples.c.id).limit(1).with_for_update(skip_locked=True)
    if job_id is not None:
        choice = choice.where(ripples.c.job_id == job_id)
    ripple = await session.first(choice)
    if ripple is None:
        return False
    if ripple.kind == STOP:
        await session.run(delete(ripples).where(ripples.c.id == ripple.id))
        await stop_job(session, ripple.job_id)
        return True
    targets, last = await _step(session, ripple)
    if last is None:
        await session.run(delete(ripples).where(ripples.c.id == ripple.id))
    else:
        await session.run(update(ripples).where(ripples.c.id == ripple.id).values(after_id=last))
    tally = Tally(left=STEP)
    concerned = targets.told() | targets.doomed | targets.drowned | targets.spared
    tally.job_of = dict.fromkeys([ripple.node_id, *concerned], ripple.job_id)
    if ripple.kind in (DOOM, DROWN):
        targets.causes = dict.fromkeys(concerned, ripple.cause_id or ripple.node_id)
    await _spread(session, Sources(), targets, tally)
    return True


async def _step(session: Session, ripple: Row[Any]) -> tuple[Targets, int | None]:
    """Return the next STEP nodes that a ripple concerns, and the id after which to go on, None at the end."""
    targets = Targets()
    if ripple.kind in (RELEASE, DOOM, END):
        rows = await session.rows(
            select(dependencies.c.next_id, dependencies.c.next_type)
            .where(
                dependencies.c.previous_id == ripple.node_id,
                dependencies.c.next_id > ripple.after_id,
                dependencies.c.met.is_(False),
            )
            .order_by(dependencies.c.next_id)
            .limit(STEP)
        )
        skipped = ripple.kind == RELEASE and await _is_skipped(session, ripple.node_id)
        failing = ripple.kind == DOOM and ripple.node_type == "group"
        for row in rows:
            targets.tell(row.next_id, row.next_type, ripple.kind, skipped=skipped, failing=failing)
    else:
        if ripple.after_id == 0:
            await _enter(session, [ripple.node_id], targets, ripple.kind)
        rows = await session.rows(
            select(tasks.c.id)
            .where(tasks.c.group_id == ripple.node_id, tasks.c.id > ripple.after_id)
            .order_by(tasks.c.id)
            .limit(STEP)
        )
        await _members(session, [row.id for row in rows], targets, ripple.kind)
    return targets, rows[-1][0] if len(rows) == STEP else None


async def _is_skipped(session: Session, node: int) -> bool:
    """Return whether the node is a task that was skipped."""
    return bool(await session.scalar(select(tasks.c.status).where(tasks.c.id == node)) == TaskStatus.SKIPPED)


# ---------------------------------------------------------------- look


async def _look(session: Session, sources: Sources, targets: Targets, tally: Tally) -> None:
    """Add to the targets the nodes that are concerned by the sources."""
    ended = {*sources.release, *sources.doom, *sources.end}
    if ended:
        for row in await session.rows(session.built(_waiting), {"ids": session.dialect.pack(sorted(ended))}):
            previous, node, kind = row.previous_id, row.next_id, row.next_type
            tally.job_of[node] = row.job_id
            if previous in sources.release:
                targets.tell(node, kind, RELEASE, skipped=previous in sources.skipped)
                continue
            if previous in sources.doom:
                tally.blame(node, tally.cause_of[previous])
                targets.tell(node, kind, DOOM, failing=previous in sources.failing)
            if previous in sources.end:
                targets.tell(node, kind, END)
    for inside, source in ((sources.open, OPEN), (sources.drown, DROWN), (sources.spare, SPARE)):
        if inside:
            children = await _enter(session, sorted(inside), targets, source)
            tally.job_of |= {group.id: group.job_id for group in children}
            members = select(tasks.c.id, tasks.c.group_id).where(session.any_of(tasks.c.group_id, sorted(inside)))
            rows = await session.rows(members)
            await _members(session, [row.id for row in rows], targets, source)
            if source == DROWN:
                for node, group in [(row.id, row.parent_group_id) for row in children] + [tuple(row) for row in rows]:
                    tally.blame(node, tally.cause_of[group])


def _waiting(dialect: Dialect) -> Select[Any]:
    """Select the unmet edges from these nodes to those that wait."""
    read = ("previous_id", "next_id", "next_type", "job_id")
    unmet = dependencies.c.met.is_(False)
    return select(*(dependencies.c[name] for name in read)).where(dialect.in_ids(dependencies.c.previous_id), unmet)


async def _enter(session: Session, inside: Sequence[int], targets: Targets, source: str) -> Sequence[Row[Any]]:
    """Add the groups directly inside these to the targets; return them."""
    children = await session.rows(
        select(groups.c.id, groups.c.job_id, groups.c.parent_group_id).where(
            session.any_of(groups.c.parent_group_id, inside)
        )
    )
    ids = [row.id for row in children]
    if source == OPEN:
        targets.ungated.update(ids)
        targets.groups.update(ids)
    else:
        (targets.drowned if source == DROWN else targets.spared).update(ids)
    return children


async def _members(session: Session, ids: Sequence[int], targets: Targets, source: str) -> None:
    """Add these members of a group to the targets: of an OPEN only those that its gate holds back, else all of them."""
    if source == OPEN:
        targets.ungated.update(await lock_gated(session, ids))
    else:
        (targets.doomed if source == DROWN else targets.unneeded).update(ids)


# ---------------------------------------------------------------- write


async def _write(session: Session, sources: Sources, targets: Targets, tally: Tally) -> Sources:
    """Lock and change the targets, tasks before groups; return what ended or opened by that."""
    told = targets.told()
    following = await _write_tasks(session, told - targets.groups, targets, tally)
    following.drown |= targets.drowned
    following.spare |= targets.spared - targets.drowned
    changes = (told & targets.groups) | sources.finished.keys() | sources.failed.keys()
    if changes:
        await _write_groups(session, sorted(changes), sources, targets, tally, following)
    return following


async def _write_tasks(session: Session, told: set[int], targets: Targets, tally: Tally) -> Sources:
    concerned = told | targets.doomed | targets.unneeded
    if not concerned:
        return Sources()
    locked = await lock_tasks(session, sorted(concerned))
    doomed, unneeded = set(targets.doomed), set(targets.unneeded)
    less: dict[int, int] = {}
    changed: dict[tuple[int, bool], list[int]] = {}
    for row in locked:
        gate = row.id in targets.ungated
        if row.trigger_rule == When.ALL_COMPLETED:
            less[row.id] = targets.complete[row.id] + gate
            if row.id in targets.failed:
                doomed.add(row.id)
            continue
        before = row.unmet_count - row.gated
        verdict = learn(When(row.trigger_rule), before, row.awaited_count, row.amiss, targets.news(row.id))
        less[row.id] = before - verdict.unmet + gate
        if (verdict.awaited, verdict.amiss) != (row.awaited_count, row.amiss):
            changed.setdefault((verdict.awaited, verdict.amiss), []).append(row.id)
        if verdict.fate in _FATES:
            (doomed if verdict.fate is Fate.DOOMED else unneeded).add(row.id)
    await shift(session, tasks.c.unmet_count, {node: -count for node, count in less.items() if count})
    if targets.ungated:
        ungated = sorted(targets.ungated - targets.groups)
        await session.run(update(tasks).where(session.any_of(tasks.c.id, ungated)).values(gated=False))
    for (awaited, amiss), ids in sorted(changed.items()):
        facts = {"awaited_count": awaited, "amiss": amiss}
        await session.run(update(tasks).where(session.any_of(tasks.c.id, ids)).values(**facts))
    ends = doomed | unneeded
    free = [row for row in locked if less[row.id] and row.unmet_count == less[row.id] and row.id not in ends]
    await ready_near_inputs(session, free)
    return await _end([row for row in locked if row.id in ends], doomed, session, tally)


_FATES = (Fate.DOOMED, Fate.SKIPPED)


async def _end(rows: Sequence[Row[Any]], doomed: set[int], session: Session, tally: Tally) -> Sources:
    """Doom or skip these locked tasks; return what that means for others."""
    if not rows:
        return Sources()
    await leave_delay(session, [row.id for row in rows if row.run_after is not None])
    ended = await _doom(session, [row for row in rows if row.id in doomed], tally)
    unneeded = [row for row in rows if row.id not in doomed]
    if unneeded:
        ended += await skip_tasks(session, unneeded, await session.now())
        await free_pins(session, [row.id for row in unneeded])
    return _begin(ended, tally)


async def _doom(session: Session, rows: Sequence[Row[Any]], tally: Tally) -> list[EndedTask]:
    """Doom these tasks, with errors that name the cause; a job without an error gets that of its first critical one."""
    by_cause: dict[int, list[Row[Any]]] = {}
    waiting = [row for row in rows if row.status in TASK_MOVES["doom"].sources]
    await _find_blame(session, [row.id for row in waiting], tally)
    for row in waiting:
        by_cause.setdefault(tally.cause_of[row.id], []).append(row)
    if not by_cause:
        return []
    said = await explain(session, by_cause)
    told = {row.id: said[cause] for cause, doomed in by_cause.items() for row in doomed}
    for job_id, error in (await first_errors(session, [row for row in rows if row.id in told], told)).items():
        tally.errors.setdefault(job_id, error)
    now = await session.now()
    ended: list[EndedTask] = []
    for cause, doomed in by_cause.items():
        ended += await doom_tasks(session, doomed, now, cause, error_of(said[cause]))
    return ended


_COUNT_GROUP = (
    update(groups)
    .where(groups.c.id == bindparam("group"))
    .values(
        open_count=groups.c.open_count - bindparam("complete", type_=Integer),
        failed_count=groups.c.failed_count + bindparam("failed", type_=Integer),
        unended_count=groups.c.unended_count - bindparam("finished", type_=Integer),
        unmet_count=groups.c.unmet_count - bindparam("unmet", type_=Integer),
    )
)


async def _write_groups(
    session: Session, ids: Sequence[int], sources: Sources, targets: Targets, tally: Tally, following: Sources
) -> None:
    for row in await lock_groups(session, ids):
        tally.job_of[row.id] = row.job_id
        unmet = await _tell_group(session, row, targets, tally, following)
        complete, failed, finished = sources.opened[row.id], sources.failed[row.id], sources.finished[row.id]
        counts = {"complete": complete, "failed": failed, "finished": finished, "unmet": unmet}
        await session.run(_COUNT_GROUP, {"group": row.id, **counts})
        if unmet and row.unmet_count == unmet:
            following.open.add(row.id)
        parent = row.parent_group_id
        if failed and not row.failed_count:
            _tell_around(row, following.doom, following.failed, tally)
            following.failing.add(row.id)
            tally.blame(parent, tally.cause_of[row.id])
        if finished and row.unended_count == finished:
            if row.open_count == complete:
                _tell_around(row, following.release, following.opened, tally)
            else:
                _tell_around(row, following.end, Counter(), tally)
            if parent is not None:
                following.finished[parent] += 1


async def _tell_group(session: Session, row: Row[Any], targets: Targets, tally: Tally, following: Sources) -> int:
    """Tell a group of its inputs and of the group around it; return by how much its `unmet_count` falls."""
    gate = row.id in targets.ungated
    if row.trigger_rule == When.ALL_COMPLETED:
        if row.id in targets.failed:
            following.drown.add(row.id)
        return targets.complete[row.id] + gate
    when = When(row.trigger_rule)
    if when not in ONE:
        before = row.unmet_count
        verdict = learn(when, before, 0, False, targets.news(row.id))
    else:
        before = 1
        verdict = learn(when, before, row.awaited_count, row.amiss, targets.news(row.id))
        if (verdict.awaited, verdict.amiss) != (row.awaited_count, row.amiss):
            facts = {"awaited_count": verdict.awaited, "amiss": verdict.amiss}
            await session.run(update(groups).where(groups.c.id == row.id).values(**facts))
    if verdict.fate is Fate.DOOMED:
        await _find_blame(session, [row.id], tally)
        following.drown.add(row.id)
    elif verdict.fate is Fate.SKIPPED:
        following.spare.add(row.id)
    return int(before - verdict.unmet + gate)


async def _find_blame(session: Session, nodes: Sequence[int], tally: Tally) -> None:
    """Look up causes that are unknown: failures of earlier transactions that did not doom the node at the time."""
    unknown = [node for node in nodes if node not in tally.cause_of]
    if unknown:
        tally.cause_of |= await find_causes_before(session, unknown)


def _tell_around(row: Row[Any], told: dict[int, int], parents: Counter[int], tally: Tally) -> None:
    if row.dependents_count:
        told[row.id] = row.dependents_count
    if row.parent_group_id is not None:
        parents[row.parent_group_id] += 1
        tally.job_of[row.parent_group_id] = row.job_id
