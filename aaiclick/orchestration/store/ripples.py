"""What an ending means for the rest of the graph: counters fall, tasks become ready, doom spreads, groups and jobs end.

It works in waves, each a few statements whatever its width: look who waits for what has just ended (the ended rows are
locked by now, so no edge can be added unseen), lock those, write their counters, and go on with what ended thereby.
What would be too much for one transaction is left as rows of `ripples`, and worked off in bounded steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Integer, Row, Select, Update, bindparam, delete, select, update

from aaiclick.orchestration.rules.states import TASK_MOVES, TaskStatus
from aaiclick.orchestration.store.causes import error_of, explain, first_errors
from aaiclick.orchestration.store.dialects.contract import Dialect, EndedTask
from aaiclick.orchestration.store.endings import stop_job
from aaiclick.orchestration.store.queue import leave_delay, make_ready
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, groups, ripples, tasks
from aaiclick.orchestration.store.tellings import DOOM, DROWN, RELEASE, Sources, Tally, Targets, postpone
from aaiclick.orchestration.store.transitions import STOP, count_in_job, doom_tasks, lock_groups, lock_tasks

STEP = 2_000
"""How many tasks one transaction may ready or doom."""


async def settle(
    session: Session,
    ended: Sequence[EndedTask],
    errors: dict[int, str] | None = None,
    more: Mapping[int, Counter[str]] | None = None,
    doomed: Mapping[int, Targets] | None = None,
) -> bool:
    """Tell the graph that these tasks ended; says whether ripples were left for later.

    `more` is added to the counters of these jobs in the same stroke, and what is doomed is counted in it: a job must
    not be without open tasks in between.
    """
    tally = Tally(errors=errors or {}, left=STEP)
    for job_id, counts in (more or {}).items():
        tally.counts[job_id] = Counter(counts)
    targets = Targets()
    for job_id, concerned in (doomed or {}).items():
        targets.doomed |= concerned.doomed
        targets.drowned |= concerned.drowned
        targets.causes |= concerned.causes
        tally.job_of |= dict.fromkeys(concerned.drowned, job_id)
    return await _spread(session, _begin(ended, tally), targets, tally)


async def spread_doom(session: Session, job_id: int, targets: Targets) -> bool:
    """Doom these tasks, and all tasks of these groups, with what waits for them."""
    return await _spread(session, Sources(), targets, Tally(job_of=dict.fromkeys(targets.drowned, job_id), left=STEP))


def _begin(ended: Sequence[EndedTask], tally: Tally) -> Sources:
    sources = Sources()
    tally.add(ended)
    for task in ended:
        if not task.dependents_count and task.group_id is None:
            continue
        complete = task.status == TaskStatus.COMPLETED
        if task.dependents_count:
            (sources.release if complete else sources.doom)[task.id] = task.dependents_count
            tally.job_of[task.id] = task.job_id
        if task.group_id is not None:
            (sources.opened if complete else sources.failed)[task.group_id] += 1
            tally.job_of[task.group_id] = task.job_id
        if not complete:
            tally.blame(task.id, task.id)
            tally.blame(task.group_id, tally.cause_of[task.id])
    return sources


async def _spread(session: Session, sources: Sources, targets: Targets, tally: Tally) -> bool:
    postponed: list[dict[str, Any]] = []
    tally.cause_of |= targets.causes
    while sources or targets.tasks or targets.groups or targets.doomed or targets.drowned:
        postponed += await postpone(session, sources, tally)
        await _look(session, sources, targets, tally)
        sources = await _write(session, sources, targets, tally)
        targets = Targets()
    await session.insert(ripples, postponed)
    rippling = bool(postponed)
    for job_id in sorted(tally.counts):
        rippling |= await count_in_job(session, job_id, tally.counts[job_id], tally.errors.get(job_id))
    return rippling


# ---------------------------------------------------------------- what was too much for then


async def work_one_ripple(session: Session, job_id: int | None = None) -> bool:
    """Take the next step of one postponed ripple; False when none is left (or others work on all of them)."""
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
    tally.job_of = dict.fromkeys([ripple.node_id, *targets.groups, *targets.drowned], ripple.job_id)
    targets.causes = dict.fromkeys([*targets.doomed, *targets.drowned], ripple.cause_id or ripple.node_id)
    await _spread(session, Sources(), targets, tally)
    return True


async def _step(session: Session, ripple: Row[Any]) -> tuple[Targets, int | None]:
    """The next STEP of those concerned, and where to go on, None at the end."""
    targets = Targets()
    if ripple.kind in (RELEASE, DOOM):
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
        for row in rows:
            _concern(targets, row.next_id, row.next_type, ripple.kind == DOOM)
    else:
        if ripple.after_id == 0:
            await _enter(session, [ripple.node_id], targets, ripple.kind == DROWN)
        rows = await session.rows(
            select(tasks.c.id)
            .where(tasks.c.group_id == ripple.node_id, tasks.c.id > ripple.after_id)
            .order_by(tasks.c.id)
            .limit(STEP)
        )
        await _members(session, [row.id for row in rows], targets, ripple.kind == DROWN)
    return targets, rows[-1][0] if len(rows) == STEP else None


# ---------------------------------------------------------------- look


async def _look(session: Session, sources: Sources, targets: Targets, tally: Tally) -> None:
    """Find who is concerned by what has ended."""
    ended = [*sources.release, *sources.doom]
    if ended:
        for row in await session.rows(session.built(_waiting), {"ids": session.dialect.pack(sorted(ended))}):
            doomed = row.previous_id in sources.doom
            _concern(targets, row.next_id, row.next_type, doomed)
            tally.job_of[row.next_id] = row.job_id
            if doomed:
                tally.blame(row.next_id, tally.cause_of[row.previous_id])
    for inside, doomed in ((sources.open, False), (sources.drown, True)):
        if inside:
            children = await _enter(session, sorted(inside), targets, doomed)
            tally.job_of |= {group.id: group.job_id for group in children}
            members = select(tasks.c.id, tasks.c.group_id).where(session.any_of(tasks.c.group_id, sorted(inside)))
            rows = await session.rows(members)
            await _members(session, [row.id for row in rows], targets, doomed)
            if doomed:
                for node, group in [(row.id, row.parent_group_id) for row in children] + [tuple(row) for row in rows]:
                    tally.blame(node, tally.cause_of[group])


def _waiting(dialect: Dialect) -> Select[Any]:
    """Who waits for these."""
    read = ("previous_id", "next_id", "next_type", "job_id")
    unmet = dependencies.c.met.is_(False)
    return select(*(dependencies.c[name] for name in read)).where(dialect.in_ids(dependencies.c.previous_id), unmet)


def _concern(targets: Targets, node: int, kind: str, doomed: bool) -> None:
    if kind == "task":
        if doomed:
            targets.doomed.add(node)
        else:
            targets.tasks[node] += 1
    elif doomed:
        targets.drowned.add(node)
    else:
        targets.groups[node] += 1


async def _enter(session: Session, inside: Sequence[int], targets: Targets, doomed: bool) -> Sequence[Row[Any]]:
    """Concern the groups directly inside these."""
    children = await session.rows(
        select(groups.c.id, groups.c.job_id, groups.c.parent_group_id).where(
            session.any_of(groups.c.parent_group_id, inside)
        )
    )
    for row in children:
        _concern(targets, row.id, "group", doomed)
    return children


async def _members(session: Session, ids: Sequence[int], targets: Targets, doomed: bool) -> None:
    """Concern these tasks of a group: those that its gate holds back, or all of them when they are doomed."""
    if doomed:
        targets.doomed.update(ids)
        return
    held = await lock_gated(session, ids)
    targets.tasks.update(held)
    targets.ungated += held


async def lock_gated(session: Session, ids: Sequence[int]) -> list[int]:
    """Those of these tasks that their group's gate holds back, locked."""
    if not ids:
        return []
    rows = await session.rows(
        select(tasks.c.id)
        .where(session.any_of(tasks.c.id, sorted(ids)), tasks.c.gated.is_(True))
        .order_by(tasks.c.id)
        .with_for_update(key_share=True)
    )
    return [row.id for row in rows]


# ---------------------------------------------------------------- write


async def _write(session: Session, sources: Sources, targets: Targets, tally: Tally) -> Sources:
    """Lock and change those concerned, tasks before groups; gives what ended thereby."""
    following = await _write_tasks(session, targets, tally)
    following.drown |= targets.drowned
    changes = set(targets.groups) | set(sources.opened) | set(sources.failed)
    if changes:
        await _write_groups(session, sorted(changes), sources, targets, tally, following)
    return following


async def _write_tasks(session: Session, targets: Targets, tally: Tally) -> Sources:
    concerned = set(targets.tasks) | targets.doomed
    if not concerned:
        return Sources()
    locked = await lock_tasks(session, sorted(concerned))
    await shift(session, tasks.c.unmet_count, {node: -count for node, count in targets.tasks.items()})
    if targets.ungated:
        await session.run(update(tasks).where(session.any_of(tasks.c.id, targets.ungated)).values(gated=False))
    free = [row.id for row in locked if row.id in targets.tasks and row.unmet_count == targets.tasks[row.id]]
    await make_ready(session, [task for task in free if task not in targets.doomed])
    doomed = [row for row in locked if row.id in targets.doomed]
    if not doomed:
        return Sources()
    await leave_delay(session, [row.id for row in doomed if row.run_after is not None])
    return _begin(await _doom(session, doomed, tally), tally)


async def _doom(session: Session, rows: Sequence[Row[Any]], tally: Tally) -> list[EndedTask]:
    """End these tasks, each with the word of what failed; a job without an error gets that of the first critical."""
    by_cause: dict[int, list[Row[Any]]] = {}
    for row in rows:
        if row.status in TASK_MOVES["doom"].sources:
            by_cause.setdefault(tally.cause_of[row.id], []).append(row)
    said = await explain(session, by_cause)
    told = {row.id: said[cause] for cause, doomed in by_cause.items() for row in doomed}
    for job_id, error in (await first_errors(session, [row for row in rows if row.id in told], told)).items():
        tally.errors.setdefault(job_id, error)
    now = await session.now()
    ended: list[EndedTask] = []
    for cause, doomed in by_cause.items():
        ended += await doom_tasks(session, doomed, now, cause, error_of(said[cause]))
    return ended


async def shift(session: Session, column: Column[Any], by: Mapping[int, int]) -> None:
    """Add to a counter of these rows: one statement for each size of the step."""
    sizes: dict[int, list[int]] = {}
    for node, count in by.items():
        sizes.setdefault(count, []).append(node)
    for count, ids in sorted(sizes.items()):
        values = {"ids": session.dialect.pack(sorted(ids)), "more": count}
        await session.run(session.built(_SHIFTS[column.table.name, column.name]), values)


def _shift(column: Column[Any]) -> Callable[[Dialect], Update]:
    def build(dialect: Dialect) -> Update:
        which = dialect.in_ids(column.table.c.id)
        return update(column.table).where(which).values({column.name: column + bindparam("more", type_=Integer)})

    return build


_COUNTERS = {tasks: ("unmet_count", "dependents_count"), groups: ("unmet_count", "open_count", "dependents_count")}
_SHIFTS = {(table.name, name): _shift(table.c[name]) for table, names in _COUNTERS.items() for name in names}


_COUNT_GROUP = (
    update(groups)
    .where(groups.c.id == bindparam("group"))
    .values(
        open_count=groups.c.open_count - bindparam("complete", type_=Integer),
        failed_count=groups.c.failed_count + bindparam("failed", type_=Integer),
        unmet_count=groups.c.unmet_count - bindparam("unmet", type_=Integer),
    )
)


async def _write_groups(
    session: Session, ids: Sequence[int], sources: Sources, targets: Targets, tally: Tally, following: Sources
) -> None:
    for row in await lock_groups(session, ids):
        tally.job_of[row.id] = row.job_id
        complete, failed, unmet = sources.opened[row.id], sources.failed[row.id], targets.groups[row.id]
        await session.run(_COUNT_GROUP, {"group": row.id, "complete": complete, "failed": failed, "unmet": unmet})
        if unmet and row.unmet_count == unmet:
            following.open.add(row.id)
        if complete and row.open_count == complete:
            _end_group(row, following.release, following.opened, tally)
        if failed and not row.failed_count:
            _end_group(row, following.doom, following.failed, tally)
            tally.blame(row.parent_group_id, tally.cause_of[row.id])


def _end_group(row: Row[Any], told: dict[int, int], parents: Counter[int], tally: Tally) -> None:
    if row.dependents_count:
        told[row.id] = row.dependents_count
    if row.parent_group_id is not None:
        parents[row.parent_group_id] += 1
        tally.job_of[row.parent_group_id] = row.job_id
