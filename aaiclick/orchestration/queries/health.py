"""Health checks: the database, its schema, the workers, stale tasks, the leader, its reconcilers, the disk."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aaiclick.backend import get_db_url
from aaiclick.clock import SYSTEM_CLOCK
from aaiclick.config import settings
from aaiclick.errors import AaiclickError, SchemaError
from aaiclick.orchestration.connections import connected
from aaiclick.orchestration.rules.reconcilers import ReconcilerRecord
from aaiclick.orchestration.store.connecting import explain
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.leases.reconcilers import read_reconcilers
from aaiclick.orchestration.store.reading import health as store
from aaiclick.orchestration.store.schema import HEAD, require_current
from aaiclick.urls import mask_url

ANSWER_S_MAX = 10.0
"""If the database takes longer to answer, it counts as unreachable."""

GRACE_S = 10.0
"""The leader looks every few seconds: work that has waited longer for it was missed."""

FREE_MB_MIN = 100

START_A_WORKER = "Run: aaiclick worker start"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. The hint of a check that is ok says what is missing before tasks can run."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """The results of all checks. It is true if every check is ok, and indexed by the name of a check."""

    checks: Sequence[Check]
    reconcilers: Sequence[ReconcilerRecord] = ()
    """How each reconciler of the leader has fared; empty if no process has led yet."""

    def __bool__(self) -> bool:
        return all(check.ok for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)


async def health_check() -> Health:
    """Run all checks. A database that cannot be reached or used makes checks fail; no error is raised for it.

    The checks are always the same: database, schema, workers, stale_tasks, leader, reconcilers, disk; and redis, where
    AAICLICK_REDIS_URL is set.
    """
    state = await _check_state(get_db_url())
    checks = [*state.checks, await asyncio.to_thread(_check_disk)]
    if url := settings().redis_url:  # never a failure: everything goes on without it
        from aaiclick.orchestration.queries.redis_health import look_at_redis  # here, to keep start-up light

        checks.append(Check("redis", True, *await look_at_redis(url)))
    return Health(checks, state.reconcilers)


# ---------------------------------------------------------------- the state


async def _check_state(url: str) -> Health:
    try:
        async with asyncio.timeout(ANSWER_S_MAX), connected() as database:
            return await _look(database)
    except SchemaError as error:
        schema = Check("schema", False, f"{error.facts['found']}; this version needs {HEAD}", error.facts["hint"])
        answers = Check("database", True, f"{mask_url(url)} answers")
        return Health([answers, schema, *_unknown("the schema cannot be used")])
    except AaiclickError as error:
        return _unreachable(str(error))
    except TimeoutError:
        return _unreachable(f"{mask_url(url)} does not answer within {ANSWER_S_MAX:g} s")
    except Exception as error:
        known = explain(error, url)
        if known is None:
            raise
        return _unreachable(str(known))


def _unreachable(detail: str) -> Health:
    why = "the database cannot be used"
    return Health([Check("database", False, detail), Check("schema", False, f"not known: {why}"), *_unknown(why)])


def _unknown(why: str) -> list[Check]:
    return [Check(name, False, f"not known: {why}") for name in ("workers", "stale_tasks", "leader", "reconcilers")]


async def _look(database: Database) -> Health:
    began = SYSTEM_CLOCK.monotonic()
    await database.read(lambda session: session.now())
    took_ms = 1000 * (SYSTEM_CLOCK.monotonic() - began)
    async with database.connection() as connection:
        await require_current(connection)
    workers = await database.read(store.count_live_workers)
    has_work = await database.read(store.has_work)
    stuck = await database.read(lambda session: store.stuck_workers(session, grace_s=GRACE_S))
    stale = await database.read(lambda session: store.stale_claims(session, grace_s=GRACE_S))
    overdue = await database.read(lambda session: store.count_overdue(session, grace_s=GRACE_S))
    leader = await database.read(store.leader)
    reconcilers = await database.read(read_reconcilers)
    checks = [
        Check("database", True, f"{mask_url(database.url)} answers in {took_ms:.1f} ms"),
        Check("schema", True, HEAD),
        judge_workers(workers, has_work=has_work, stuck=stuck),
        judge_stale(stale),
        judge_leader(leader, waiting=overdue + stale.number),
        judge_reconcilers(reconcilers),
    ]
    return Health(checks, reconcilers)


def judge_workers(live: int, *, has_work: bool, stuck: store.Stuck | None = None) -> Check:
    """Fail if there is work and no live worker, or if live workers cannot report what they ran. No work needs none."""
    if live and stuck is not None:
        who = f"worker {stuck.worker_id} on {stuck.hostname}, for {stuck.longest_s} s"
        detail = f"{_count(live)} live; cannot report what they have run: {_count(stuck.number)} ({who})"
        return Check(
            "workers", False, detail, "The worker's log says why. The worker tries again, and ends if it cannot report."
        )
    if live:
        return Check("workers", True, f"{_count(live)} live")
    if has_work:
        return Check("workers", False, "none is live, and there is work", START_A_WORKER)
    return Check("workers", True, "none is live; there is no work", START_A_WORKER)


def judge_stale(stale: store.Stale) -> Check:
    if not stale.number:
        return Check("stale_tasks", True, "none")
    detail = f"{_count(stale.number)} held by workers that are gone, the oldest for {stale.oldest_s:.0f} s"
    return Check("stale_tasks", False, detail, "A leader gives them back. " + START_A_WORKER)


def judge_leader(leader: store.LeaderState | None, *, waiting: int) -> Check:
    """Fail if no process leads while `waiting` tasks need a leader: overdue delayed tasks and stale claims."""
    if leader is not None and leader.left_s > 0:
        return Check("leader", True, f"{leader.holder}, term {leader.term}, {leader.left_s:.0f} s left")
    last = "no process leads" if leader is None else f"no process has led for {-leader.left_s:.0f} s"
    if waiting:
        return Check("leader", False, f"{last}; tasks waiting for a leader: {_count(waiting)}", START_A_WORKER)
    return Check("leader", True, f"{last}; nothing is waiting for a leader", START_A_WORKER)


def judge_reconcilers(reconcilers: Sequence[ReconcilerRecord]) -> Check:
    """Name the failing reconcilers. The check stays ok: a failing one is tried again and does not stop the others."""
    failing = [each for each in reconcilers if each.is_failing]
    if failing:
        found = "; ".join(f"{each.name} fails: {each.trouble}" for each in failing)
        return Check("reconcilers", True, found, "The leader tries again; its log says more.")
    return Check("reconcilers", True, f"{len(reconcilers)}, none fails" if reconcilers else "no reconciler has run yet")


def _count(number: int) -> str:
    return f"{number} or more" if number >= store.COUNTED_MAX else str(number)


# ---------------------------------------------------------------- the disk


def _check_disk() -> Check:
    places = {"AAICLICK_LOCAL_ROOT": settings().local_root, "AAICLICK_LOG_DIR": settings().log_dir}
    return judge_disk([_look_at(name, place) for name, place in places.items()])


@dataclass(frozen=True, slots=True)
class DiskPlace:
    """A directory that a setting names. If it does not exist, space and access are those of its nearest parent."""

    setting: str
    path: Path
    free_mb: float
    writable: bool


def _look_at(setting: str, path: Path) -> DiskPlace:
    found = next(place for place in (path, *path.parents) if os.path.exists(place))
    writable = found.is_dir() and os.access(found, os.W_OK | os.X_OK)
    return DiskPlace(setting, path, shutil.disk_usage(found).free / 1e6, writable)


def judge_disk(places: Sequence[DiskPlace]) -> Check:
    for place in places:
        if not place.writable:
            return Check("disk", False, f"{place.path} cannot be written", f"Set {place.setting} to another directory.")
        if place.free_mb < FREE_MB_MIN:
            detail = f"{place.path} has {place.free_mb:.0f} MB free; {FREE_MB_MIN} are needed"
            return Check("disk", False, detail, f"Free some space, or set {place.setting} to another directory.")
    return Check("disk", True, ", ".join(f"{place.path}: {place.free_mb / 1000:.1f} GB free" for place in places))
