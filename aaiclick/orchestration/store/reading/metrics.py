"""Metrics, counted from events: each event is added once to a few rows of `metrics`; newer events are counted on read.

Ids of events are not in the order of commits. So an event is counted for good only when it is so old that every
transaction that took a lower id has ended. Younger events are counted again at each read. The row `horizon` has the id
of the last event that is counted for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
    Select,
    and_,
    bindparam,
    case,
    cast,
    func,
    select,
    update,
)

from aaiclick.orchestration.rules.metrics import (
    ALL,
    ENDING_MOVES,
    GROWING_MOVES,
    GROWTH,
    JOB_COUNTERS,
    JOB_S,
    METRICS,
    QUEUE_COUNTED_MAX,
    TASK_COUNTERS,
    TASK_S,
    WORKERS_SHOWN_MAX,
    Amount,
    Key,
    Metrics,
    Tally,
    WorkerMetrics,
    add,
    counters_of,
    histograms_of,
    jobs_of,
)
from aaiclick.orchestration.rules.states import WorkerStatus
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.leases.reconcilers import read_reconcilers
from aaiclick.orchestration.store.reading import job_metrics
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, events, jobs, metrics, ready, runs, tasks, workers

STEP = 20_000
"""Ids of events that one transaction counts for good, at most."""

WINDOW = 10_000
"""From this many ids above the horizon on, SETTLED_S_MIN applies, because counting events at each read takes time."""

SHOWN_MAX = 20_000
MEASURED_MAX = 2_000
"""How many ids above the horizon a read counts, and how many it measures for histograms, which takes longer.

These are the oldest, so that no number ever decreases. The other events are shown once the horizon has moved.
"""

GAP_MAX = MEASURED_MAX // 2
"""How many ids right above the horizon may be missing and still be committed late."""

SETTLED_S = 300.0
SETTLED_S_MIN = 30.0
"""The age at which an event is counted for good, in seconds; the shorter one applies under load.

The events of a transaction that takes longer from its first event to its commit may not be counted.
"""

HORIZON = ("horizon", "")
_LIVE = [status for status in WorkerStatus if status != WorkerStatus.STOPPED]
_ADD = (
    update(metrics)
    .where(metrics.c.name == bindparam("of"), metrics.c.bucket == bindparam("at"))
    .values(
        number=metrics.c.number + bindparam("more", type_=metrics.c.number.type),
        seconds=metrics.c.seconds + bindparam("more_s", type_=metrics.c.seconds.type),
    )
)


# ---------------------------------------------------------------- counting for good


async def is_behind(session: Session) -> bool:
    """Return whether there are events above the horizon."""
    newest = select(func.max(events.c.id)).scalar_subquery()
    counted = select(metrics.c.number).where(metrics.c.name == HORIZON[0]).scalar_subquery()
    row: Any = await session.first(select(newest, counted))
    return row[0] is not None and row[0] > (row[1] or 0)


async def count_settled(session: Session) -> int:
    """Count the next events that are old enough for good; return how far the horizon moved, in ids."""
    horizon = await _lock_horizon(session)
    last = await _last_settled(session, horizon)
    if last <= horizon:
        return 0
    more = await count_events(session, horizon, last) | await measure_events(session, horizon, last)
    more[HORIZON] = Amount(last - horizon)
    known = {(row.name, row.bucket) for row in await session.rows(select(metrics.c.name, metrics.c.bucket))}
    await session.insert(metrics, [_zero(key) for key in sorted(more.keys() - known)])
    rows = [
        {"of": name, "at": bucket, "more": amount.number, "more_s": amount.seconds}
        for (name, bucket), amount in sorted(more.items())
    ]
    await session.run_many(_ADD, rows)
    await job_metrics.store(session, horizon, last)
    return last - horizon


async def _lock_horizon(session: Session) -> int:
    """Lock the horizon's row and return its id. Only the transaction that holds this lock writes the other rows."""
    locked = select(metrics.c.number).where(metrics.c.name == HORIZON[0], metrics.c.bucket == HORIZON[1])
    row = await session.first(locked.with_for_update())
    if row is None:
        await insert_missing(session, metrics, [_zero(HORIZON)])
        row = await session.first(locked.with_for_update())
    assert row is not None, "it was inserted if it was not there"
    number: int = row.number
    return number


def _zero(key: Key) -> dict[str, Any]:
    return {"name": key[0], "bucket": key[1], "number": 0, "seconds": 0.0}


async def _last_settled(session: Session, horizon: int) -> int:
    """Return the id of the last event of this step that is old enough; the horizon if there is none.

    It is the id of an existing event: an id in a gap might belong to an event that is committed late.
    """
    ends: Any = await session.first(select(func.min(events.c.id), func.max(events.c.id)).where(events.c.id > horizon))
    first: int | None = ends[0]
    if first is None:
        return horizon
    settled_s = SETTLED_S_MIN if ends[1] - first >= WINDOW else SETTLED_S
    limit = await session.now() - timedelta(seconds=settled_s)
    step = (events.c.id > horizon, events.c.id < first + STEP)
    young = await session.scalar(select(func.min(events.c.id)).where(*step, events.c.at > limit))
    if young is not None:
        step = (events.c.id > horizon, events.c.id < young)
    last: int | None = await session.scalar(select(func.max(events.c.id)).where(*step))
    return horizon if last is None else last


# ---------------------------------------------------------------- counting a range of events


async def count_events(session: Session, after: int, last: int) -> Tally:
    """Return what the events with ids above `after`, up to `last`, add to the counters."""
    of_job = events.c.task_id.is_(None)
    grows = and_(of_job, events.c.move.in_(GROWING_MOVES))
    made = func.sum(case((grows, cast(events.c.detail, Integer)), else_=0)).label("made")
    rows = await session.rows(
        select(events.c.move, of_job.label("of_job"), func.count().label("size"), made)
        .where(events.c.id > after, events.c.id <= last)
        .group_by(events.c.move, of_job)
    )
    tally: Tally = {}
    for row in rows:
        name = (JOB_COUNTERS if row.of_job else TASK_COUNTERS).get(row.move)
        if name is not None:
            tally = add(tally, {(name, ""): Amount(row.size)})
        if row.made:
            tally = add(tally, {(GROWTH, ""): Amount(int(row.made))})
    return tally


async def measure_events(session: Session, after: int, last: int) -> Tally:
    """Return what the events with ids above `after`, up to `last`, add to the histograms.

    This reads the runs and jobs that the events name.
    """
    ended = and_(events.c.id > after, events.c.id <= last, events.c.move.in_(ENDING_MOVES))
    took_s = session.dialect.seconds(jobs.c.started_at, events.c.at)
    of_job = and_(ended, events.c.task_id.is_(None), jobs.c.started_at <= events.c.at)
    found = select(took_s.label("took_s")).join_from(events, jobs, jobs.c.id == events.c.job_id).where(of_job)
    tally = add(await _measure(session, JOB_S, found), await _measure_forgotten(session, ended))
    took_s = session.dialect.seconds(runs.c.claimed_at, runs.c.ended_at)
    same = and_(runs.c.task_id == events.c.task_id, runs.c.epoch == events.c.epoch)
    found = select(took_s.label("took_s")).join_from(events, runs, same).where(ended, runs.c.claimed_at.is_not(None))
    return tally | await _measure(session, TASK_S, found)


async def _measure_forgotten(session: Session, ended: ColumnElement[bool]) -> Tally:
    took = [seconds for _, seconds in await job_metrics.forgotten(session, ended)]
    return job_metrics.tally_of(took) if took else {}


async def _measure(session: Session, name: str, found: Select[Any]) -> Tally:
    """Return the histogram `name` of the durations that `found` selects as `took_s`."""
    each = found.subquery()
    limits = METRICS[name].buckets_s
    within = [func.sum(case((each.c.took_s <= limit, 1), else_=0)) for limit in limits]
    row: Any = await session.first(select(func.count(), func.sum(each.c.took_s), *within).select_from(each))
    if not row[0]:
        return {}
    tally = {(name, str(limit)): Amount(int(number)) for limit, number in zip(limits, row[2:], strict=True)}
    return tally | {(name, ALL): Amount(row[0], max(0.0, float(row[1])))}


# ---------------------------------------------------------------- reading


async def read_metrics(session: Session) -> Metrics:
    """Return all metrics as of now. The cost does not grow with the number of jobs and tasks."""
    stored = await session.rows(select(metrics))
    tally: Tally = {(row.name, row.bucket): Amount(row.number, row.seconds) for row in stored}
    horizon = tally.pop(HORIZON, Amount(0)).number
    by_job = await job_metrics.read_stored(session)
    first = await session.scalar(select(func.min(events.c.id)).where(events.c.id > horizon))
    if first is not None:
        # The end of the range is counted from the horizon and not from the first event: an event that is committed
        # later, below that one, would move the end back, and a number would decrease. Only after a large gap of unused
        # ids is it counted from the first event, so that the range contains events at all.
        start = horizon if first - horizon <= GAP_MAX else first
        tally = add(tally, await count_events(session, horizon, start + SHOWN_MAX))
        tally = add(tally, await measure_events(session, horizon, start + MEASURED_MAX))
        counted = await job_metrics.count_jobs(session, by_job, horizon, start + SHOWN_MAX)
        by_job = job_metrics.merge(by_job, counted, counted.keys())
        measured = await job_metrics.measure_jobs(session, horizon, start + MEASURED_MAX)
        by_job = job_metrics.merge(by_job, measured, by_job.keys())
    queue = select(ready.c.task_id).limit(QUEUE_COUNTED_MAX).subquery()
    depth = await session.scalar(select(func.count()).select_from(queue))
    now = await session.now()
    live = (workers.c.status.in_(_LIVE), workers.c.expires_at > now)
    active = await session.scalar(select(func.count()).select_from(workers).where(*live))
    shown = [_worker(row, now) for row in await _read_workers(session, live)]
    by_name = jobs_of(tally, by_job)
    reconcilers = await read_reconcilers(session)
    return Metrics(
        counters_of(tally), histograms_of(tally), int(depth), int(active), shown, by_name, reconcilers=reconcilers
    )


async def _read_workers(session: Session, live: tuple[ColumnElement[bool], ...]) -> Sequence[Row[Any]]:
    """Return live workers, at most WORKERS_SHOWN_MAX, each with the time of the oldest claim that it holds."""
    oldest = func.min(tasks.c.claimed_at, type_=tasks.c.claimed_at.type).label("oldest")
    return await session.rows(
        select(workers.c.id, workers.c.hostname, workers.c.last_heartbeat, workers.c.unreported_s, oldest)
        .outerjoin(claims, claims.c.worker_id == workers.c.id)
        .outerjoin(tasks, tasks.c.id == claims.c.task_id)
        .where(*live)
        .group_by(workers.c.id, workers.c.hostname, workers.c.last_heartbeat, workers.c.unreported_s)
        .order_by(workers.c.id)
        .limit(WORKERS_SHOWN_MAX)
    )


def _worker(row: Row[Any], now: datetime) -> WorkerMetrics:
    age_s = max(0.0, (now - row.last_heartbeat).total_seconds())
    busy_s = 0.0 if row.oldest is None else max(0.0, (now - row.oldest).total_seconds())
    return WorkerMetrics(row.id, row.hostname, age_s, busy_s, row.unreported_s + age_s if row.unreported_s else 0.0)
