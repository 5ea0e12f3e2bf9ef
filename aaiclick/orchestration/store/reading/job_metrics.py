"""Metrics by job name, counted from events. A bounded number of names has rows of its own in `job_metrics`.

The numbers of all other names together are the totals in `metrics` minus these rows. A name that has rows keeps them,
so that no counter ever decreases. `after` and `last` delimit the events: ids above the one, up to the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, case, func, select, update

from aaiclick.orchestration.rules.metrics import (
    ALL,
    ENDING_MOVES,
    JOB_COUNTERS,
    JOB_S,
    METRICS,
    Amount,
    Tally,
    add,
    admitted,
)
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import events, job_metrics, jobs, registered_jobs

ByJob = dict[str, Tally]

_ADD = (
    update(job_metrics)
    .where(
        job_metrics.c.job == bindparam("whose"),
        job_metrics.c.name == bindparam("of"),
        job_metrics.c.bucket == bindparam("at"),
    )
    .values(
        number=job_metrics.c.number + bindparam("more", type_=job_metrics.c.number.type),
        seconds=job_metrics.c.seconds + bindparam("more_s", type_=job_metrics.c.seconds.type),
    )
)


async def read_stored(session: Session) -> ByJob:
    """Return the stored numbers, by job name."""
    found: ByJob = {}
    for row in await session.rows(select(job_metrics)):
        found.setdefault(row.job, {})[row.name, row.bucket] = Amount(row.number, row.seconds)
    return found


async def store(session: Session, after: int, last: int) -> None:
    """Add the numbers of these events to `job_metrics`; the caller holds the lock of the horizon."""
    known = await read_stored(session)
    more = await count_jobs(session, known, after, last)
    more = merge(more, await measure_jobs(session, after, last), known.keys() | more.keys())
    amounts = [
        {"whose": job, "of": name, "at": bucket, "more": amount.number, "more_s": amount.seconds}
        for job, tally in sorted(more.items())
        for (name, bucket), amount in sorted(tally.items())
    ]
    zeros = [
        {"job": each["whose"], "name": each["of"], "bucket": each["at"], "number": 0, "seconds": 0.0}
        for each in amounts
        if (each["of"], each["at"]) not in known.get(str(each["whose"]), {})
    ]
    await session.insert(job_metrics, zeros)
    await session.run_many(_ADD, amounts)


async def count_jobs(session: Session, known: Mapping[str, Tally], after: int, last: int) -> ByJob:
    """Return what these events add to the counters, for names that have rows already or get them now."""
    rows = await session.rows(
        select(
            jobs.c.name,
            events.c.move,
            func.count().label("size"),
            func.min(events.c.id).label("first"),
            func.max(jobs.c.registered_job_id).label("entry"),
        )
        .join_from(events, jobs, jobs.c.id == events.c.job_id)
        .where(_of_jobs(after, last), events.c.move.in_(list(JOB_COUNTERS)))
        .group_by(jobs.c.name, events.c.move)
    )
    in_order = sorted(rows, key=lambda row: row.first)
    shown = admitted(await _registered(session, known), [(row.name, row.entry is not None) for row in in_order])
    found: ByJob = {}
    for row in in_order:
        if row.name in shown:
            found.setdefault(row.name, {})[JOB_COUNTERS[row.move], ""] = Amount(row.size)
    return found


async def _registered(session: Session, known: Mapping[str, Tally]) -> dict[str, bool]:
    """Return, for each of these names, whether it is that of a registered job."""
    if not known:
        return {}
    named = select(registered_jobs.c.name).where(registered_jobs.c.name.in_(sorted(known)))
    entries = {row.name for row in await session.rows(named)}
    return {name: name in entries for name in known}


async def measure_jobs(session: Session, after: int, last: int) -> ByJob:
    """Return what these events add to the histogram of job durations, by name."""
    ended = and_(_of_jobs(after, last), events.c.move.in_(ENDING_MOVES))
    took_s = session.dialect.seconds(jobs.c.started_at, events.c.at).label("took_s")
    both = select(jobs.c.name, took_s).join_from(events, jobs, jobs.c.id == events.c.job_id)
    each = both.where(ended, jobs.c.started_at <= events.c.at).subquery()
    limits = METRICS[JOB_S].buckets_s
    within = [func.sum(case((each.c.took_s <= limit, 1), else_=0)) for limit in limits]
    sizes = select(each.c.name, func.count(), func.sum(each.c.took_s), *within).group_by(each.c.name)
    found: ByJob = {}
    rows: Sequence[Any] = await session.rows(sizes)
    for row in rows:
        tally = {(JOB_S, str(limit)): Amount(int(number)) for limit, number in zip(limits, row[3:], strict=True)}
        found[row[0]] = tally | {(JOB_S, ALL): Amount(row[1], max(0.0, float(row[2])))}
    for name, seconds in await forgotten(session, ended):
        found[name] = add(found.get(name, {}), tally_of([seconds]))
    return found


def merge(some: ByJob, more: ByJob, only: Collection[str]) -> ByJob:
    """Return the sum of both; of `more`, only the names in `only` are added."""
    return some | {name: add(some.get(name, {}), more[name]) for name in more if name in only}


def tally_of(took: list[float]) -> Tally:
    """Return the histogram of these job durations, in seconds."""
    within = {(JOB_S, str(limit)): Amount(sum(each <= limit for each in took)) for limit in METRICS[JOB_S].buckets_s}
    return within | {(JOB_S, ALL): Amount(len(took), sum(took))}


async def forgotten(session: Session, ended: ColumnElement[bool]) -> list[tuple[str, float]]:
    """Return (name, seconds) for the ended runs of jobs that were cleared and started again since.

    The job's row has only the latest `started_at`. The duration of an earlier run is in the detail of the next
    `reactivate` event.
    """
    of_job = and_(ended, events.c.task_id.is_(None), jobs.c.started_at > events.c.at)
    found = select(events.c.id, events.c.job_id, jobs.c.name).join_from(events, jobs, jobs.c.id == events.c.job_id)
    endings = await session.rows(found.where(of_job))
    if not endings:
        return []
    mine = session.any_of(events.c.job_id, sorted({row.job_id for row in endings}))
    first = min(row.id for row in endings)
    cleared = (mine, events.c.id > first, events.c.task_id.is_(None), events.c.move == "reactivate")
    told: dict[int, list[tuple[int, float]]] = {}
    for row in await session.rows(select(events.c.id, events.c.job_id, events.c.detail).where(*cleared)):
        told.setdefault(row.job_id, []).append((row.id, float(row.detail or 0.0)))

    def took_s(row: Any) -> float:
        return min((each for each in told.get(row.job_id, ()) if each[0] > row.id), default=(0, 0.0))[1]

    return [(row.name, took_s(row)) for row in endings]


def _of_jobs(after: int, last: int) -> ColumnElement[bool]:
    return and_(events.c.id > after, events.c.id <= last, events.c.task_id.is_(None))
