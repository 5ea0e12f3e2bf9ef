"""The table of reconcilers: the question each asks of the database, how often it runs, and what it does.

The leader's one query is built from the questions, and the loop runs the rows from first to last: to add a reconciler,
add a row. Each does a bounded amount of work, and the next round continues wherever it was interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aaiclick.clock import Clock
from aaiclick.orchestration.control import repairs
from aaiclick.orchestration.control.accounts import Accounts
from aaiclick.orchestration.control.leader import Leader
from aaiclick.orchestration.control.pruning import Pruner
from aaiclick.orchestration.control.schedules import Scheduler
from aaiclick.orchestration.control.table_dropper import TableDropper
from aaiclick.orchestration.control.table_sweeper import TableSweeper
from aaiclick.orchestration.log_stores.contract import LogStore
from aaiclick.orchestration.store import pending_work
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.pending_work import Question

MEND_EVERY_S = 30.0
RECORD_EVERY_S = 30.0
COUNT_EVERY_S = 10.0
PRUNE_EVERY_S = 60.0
MORE_AFTER_S = 2.0
"""How soon pruning runs again after it has removed something: there may be more."""
EXPIRE_EVERY_S = 60.0
SWEEP_EVERY_S = 600.0


class Outcome(NamedTuple):
    """The outcome of one run of a reconciler."""

    done: int
    again_s: float | None = None
    """Seconds from the start of this run to another one, which takes place whatever the question says."""


class Tools:
    """The objects that reconcilers use; those with memory keep it from one run to the next."""

    def __init__(
        self,
        database: Database,
        leader: Leader,
        accounts: Accounts,
        *,
        clock: Clock,
        logs: LogStore | None,
        may_reap: Callable[[], bool],
    ) -> None:
        self.database = database
        self.leader = leader
        self.accounts = accounts
        self.may_reap = may_reap
        self.tables = TableDropper(database, clock)
        self.schedules = Scheduler(database)
        self.sweeper = TableSweeper(database, clock)
        self.pruner = Pruner(logs)


@dataclass(frozen=True, slots=True)
class Reconciler:
    """One row of the table."""

    name: str
    act: Callable[[Tools], Awaitable[int | Outcome]]
    """Does the work, and returns how much there was."""
    meaning: str
    question: Question | None = None
    """Its part of the leader's query: it runs if the answer is yes. None: it runs at each interval."""
    every_s: float = 0.0
    """The shortest interval between two runs; 0: it may run in each round."""
    follows: tuple[str, ...] = ()
    """Names of reconcilers: it also runs in a round in which one of these did something."""
    leads: bool = True
    """Whether only the leader runs it; otherwise every process runs it for its own machine."""


async def _end_dead_sessions(tools: Tools) -> int:
    return await repairs.end_dead_sessions(tools.database) if tools.may_reap() else 0


async def _fire_schedules(tools: Tools) -> Outcome:
    done = await tools.schedules.fire()
    return Outcome(done, 0.0 if tools.schedules.unfinished else None)


def _prune(work: Callable[[Tools], Awaitable[Counter[str]]]) -> Callable[[Tools], Awaitable[Outcome]]:
    async def act(tools: Tools) -> Outcome:
        done = (await work(tools)).total()
        return Outcome(done, MORE_AFTER_S if done else None)

    return act


async def _prune_logs(tools: Tools) -> int:
    return (await tools.pruner.prune_logs(tools.database)).total()


RECONCILERS = (
    Reconciler(
        "promote_due_tasks",
        lambda tools: repairs.promote_due_tasks(tools.database),
        "makes delayed tasks claimable when their time has come",
        pending_work.DELAYED_TASKS,
    ),
    Reconciler(
        "work_off_ripples",
        lambda tools: repairs.work_off_ripples(tools.database),
        "passes on postponed ends to dependent tasks and groups",
        pending_work.RIPPLES,
    ),
    Reconciler(
        "end_dead_sessions",
        _end_dead_sessions,
        "ends sessions that have expired, unless the leader was cut off itself",
        pending_work.EXPIRED_SESSIONS,
    ),
    Reconciler(
        "recover_lost_runs",
        lambda tools: repairs.recover_lost_runs(tools.database),
        "gives runs without a live session to other workers",
        pending_work.CLAIMS_OF_NOBODY,
        follows=("end_dead_sessions",),
    ),
    Reconciler(
        "end_overdue_jobs",
        lambda tools: repairs.end_overdue_jobs(tools.database),
        "fails jobs that exceed their time limit",
        pending_work.LIMITED_JOBS,
    ),
    Reconciler(
        "fire_schedules",
        _fire_schedules,
        "creates jobs for due schedules, times that waited for an earlier run, and backfills",
        pending_work.SCHEDULES,
    ),
    Reconciler(
        "end_abandoned_jobs",
        lambda tools: repairs.end_abandoned_jobs(tools.database),
        "cancels jobs whose `job_test` process is gone",
        pending_work.RESERVED_JOBS,
    ),
    Reconciler(
        "free_stray_grants",
        lambda tools: repairs.free_stray_grants(tools.database),
        "frees resources of cancelled runs whose worker is gone",
        pending_work.STRAY_GRANTS,
        follows=("end_dead_sessions", "recover_lost_runs"),
    ),
    Reconciler(
        "free_leaked_grants",
        lambda tools: repairs.free_leaked_grants(tools.database),
        "frees resources that runs hold although they have ended, which is logged as an error",
        every_s=MEND_EVERY_S,
    ),
    Reconciler(
        "free_strays",
        lambda tools: tools.tables.free_strays(),
        "ends references to tables from runs whose worker is gone",
        pending_work.STRAYS,
        follows=("end_dead_sessions", "recover_lost_runs"),
    ),
    Reconciler(
        "drop_unneeded",
        lambda tools: tools.tables.drop_unneeded(),
        "drops tables that nothing needs",
        pending_work.LOOSE_TABLES,
        follows=("free_strays",),
    ),
    Reconciler(
        "mend_stuck_jobs",
        lambda tools: repairs.mend_stuck_jobs(tools.database),
        "recounts jobs that make no progress",
        every_s=MEND_EVERY_S,
    ),
    Reconciler(
        "free_idle_pins",
        lambda tools: tools.tables.free_idle_pins(),
        "releases tables kept for tasks that ended without using them",
        every_s=MEND_EVERY_S,
    ),
    Reconciler(
        "count_events",
        lambda tools: repairs.count_events(tools.database),
        "counts events for the metrics",
        every_s=COUNT_EVERY_S,
    ),
    Reconciler(
        "prune_jobs",
        _prune(lambda tools: tools.pruner.prune_jobs(tools.database)),
        "deletes old jobs, with all that belongs to them",
        every_s=PRUNE_EVERY_S,
    ),
    Reconciler(
        "prune_events",
        _prune(lambda tools: tools.pruner.prune_events(tools.database)),
        "deletes old events, and the runs of removed tasks",
        every_s=PRUNE_EVERY_S,
    ),
    Reconciler(
        "prune_fires",
        _prune(lambda tools: tools.pruner.prune_fires(tools.database)),
        "deletes old times of schedules",
        every_s=PRUNE_EVERY_S,
    ),
    Reconciler(
        "prune_backfills",
        _prune(lambda tools: tools.pruner.prune_backfills(tools.database)),
        "deletes old backfills",
        every_s=PRUNE_EVERY_S,
    ),
    Reconciler(
        "prune_workers",
        _prune(lambda tools: tools.pruner.prune_workers(tools.database)),
        "deletes workers that ended long ago, and nodes without workers",
        every_s=PRUNE_EVERY_S,
    ),
    Reconciler(
        "prune_audit",
        _prune(lambda tools: tools.pruner.prune_audit(tools.database)),
        "deletes old entries of the audit log",
        every_s=PRUNE_EVERY_S,
    ),
    Reconciler(
        "expire_cache",
        lambda tools: repairs.expire_cache(tools.database),
        "removes cached results that have expired",
        every_s=EXPIRE_EVERY_S,
    ),
    Reconciler(
        "expire_tables",
        lambda tools: tools.sweeper.expire(),
        "marks tables whose retention time is over",
        every_s=EXPIRE_EVERY_S,
    ),
    Reconciler(
        "sweep_tables",
        lambda tools: tools.sweeper.sweep(),
        "drops unknown tables in ClickHouse",
        every_s=SWEEP_EVERY_S,
    ),
    Reconciler(
        "record_reconcilers",
        lambda tools: tools.accounts.write(tools.leader.term),
        "writes down how often each reconciler ran, what it did and how long it took",
        every_s=RECORD_EVERY_S,
    ),
    Reconciler(
        "prune_logs",
        _prune_logs,
        "deletes old logs of runs, on each machine",
        every_s=SWEEP_EVERY_S,
        leads=False,
    ),
)


def questions_of(reconcilers: Sequence[Reconciler]) -> dict[str, Question]:
    """Return the questions of the reconcilers that have one, for `look_for_work`, which asks all in one statement."""
    return {each.name: each.question for each in reconcilers if each.question is not None}
