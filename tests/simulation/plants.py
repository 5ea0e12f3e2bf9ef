"""Mistakes to plant into the real code, each of which the simulator must find; and some that are none.

Each plant is a function that gives what to replace: (module, name, replacement).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from sqlalchemy import Column, Row, select, update

from aaiclick.orchestration.control import control_loop, leader, repairs
from aaiclick.orchestration.coordinator import batches, direct
from aaiclick.orchestration.execution import cutoff
from aaiclick.orchestration.execution.holdings import Holdings
from aaiclick.orchestration.models import Done, Orders, Receipt, Stop
from aaiclick.orchestration.rules.states import LIVE_TASK
from aaiclick.orchestration.store import workers
from aaiclick.orchestration.store.claims import heartbeat_claims, recoveries, reports, stale_reports
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects import sqlite_moves
from aaiclick.orchestration.store.graphs import expansions
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.moves import clear_inputs, clears, counters, ripples
from aaiclick.orchestration.store.moves.downstream import Downstream, find_downstream
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import runs, tasks
from aaiclick.orchestration.store.tables import workers as worker_rows
from aaiclick.orchestration.store.transitions import lock_tasks
from tests.simulation.host import OF_HOST
from tests.simulation.table_plants import TABLE_MISTAKES, Plant, Replacements
from tests.simulation.world import Weather


@contextmanager
def planted(plant: Plant) -> Iterator[None]:
    with ExitStack() as patches:
        for where, name, replacement in plant():
            patches.enter_context(mock.patch.object(where, name, replacement))
        yield


# ---------------------------------------------------------------- fences


def _fenced_by(holds: Callable[[Any], bool], condition: str) -> Replacements:
    """Reports count whenever this holds, whoever sends them."""

    async def lock_claims(session: Session, worker_id: int, epochs: dict[int, int]) -> list[Row[Any]]:
        return [row for row in await lock_tasks(session, sorted(epochs)) if holds(row)]

    fence = "worker_id = ? AND status IN ('claimed', 'running')"
    assert fence in sqlite_moves._HELD
    return [
        (sqlite_moves, "_HELD", sqlite_moves._HELD.replace(fence, condition)),
        (sqlite_moves, "_FREE", "DELETE FROM claims WHERE ? > 0 AND task_id = ?"),
        (sqlite_moves, "passes", lambda held, item: True),
        (reports, "lock_claims", lock_claims),
        (heartbeat_claims, "lock_claims", lock_claims),
    ]


def no_fence() -> Replacements:
    return _fenced_by(lambda row: True, "? > 0")


def fence_by_status_only() -> Replacements:
    return _fenced_by(lambda row: row.status in LIVE_TASK, "? > 0 AND status IN ('claimed', 'running')")


def no_new_epoch_at_claim() -> Replacements:
    raised = "epoch = epoch + 1"
    assert raised in sqlite_moves._CLAIM
    return [(sqlite_moves, "_CLAIM", sqlite_moves._CLAIM.replace(raised, "epoch = epoch"))]


def no_new_epoch_at_retry() -> Replacements:
    real = reports._another_attempt

    def another_attempt(row: Row[Any], *more: Any) -> dict[str, Any]:
        return {**real(row, *more), "epoch": row.epoch}

    return [(reports, "_another_attempt", another_attempt)]


def late_reports_told_each_time() -> Replacements:
    """Nobody looks whether it is known that a run was late."""

    async def mark(session: Session, keys: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        await real(session, keys)
        return list(keys)

    real = stale_reports._mark
    news = lambda row: row is not None and row.outcome not in stale_reports.TOLD  # noqa: E731
    return [(stale_reports, "_mark", mark), (stale_reports, "_is_news", news)]


def repeats_taken_for_conflicts() -> Replacements:
    """Whoever says again what it has said is told that it said something else."""
    return [(stale_reports, "_is_same", lambda *_: False)]


# ---------------------------------------------------------------- sessions


def clock_of_the_worker() -> Replacements:
    """The end of a session is reckoned by the worker's own clock."""

    async def renew_session(session: Session, worker_id: int, session_s: float, **counts: int) -> Orders:
        orders = await real(session, worker_id, session_s, **counts)
        host = OF_HOST.get()
        if orders.alive and host is not None:
            until = datetime.fromtimestamp(host.clock.wall(), UTC) + timedelta(seconds=session_s)
            await session.run(update(worker_rows).where(worker_rows.c.id == worker_id).values(expires_at=until))
        return orders

    real = workers.renew_session
    return [(workers, "renew_session", renew_session)]


def session_that_comes_back() -> Replacements:
    """A beat revives a session that was ended."""

    async def renew_session(session: Session, worker_id: int, session_s: float, **counts: int) -> Orders:
        await session.run(update(worker_rows).where(worker_rows.c.id == worker_id).values(status="active"))
        return await real(session, worker_id, session_s, **counts)

    real = workers.renew_session
    return [(workers, "renew_session", renew_session)]


def outage_taken_for_a_crash() -> Replacements:
    return [(control_loop.Control, "may_reap", lambda control: True)]


def beat_that_asks_for_nothing() -> Replacements:
    """Claims whose answer was lost are never found."""

    async def compare(*_: Any) -> tuple[dict[tuple[int, int], Stop], bool]:
        return {}, False

    return [(direct, "_compare", compare)]


def beat_that_takes_what_is_on_its_way() -> Replacements:
    """Unlisted claims are released whatever call made them."""

    async def claimed_by(session: Session, worker_id: int) -> dict[tuple[int, int], int]:
        return dict.fromkeys(await real(session, worker_id), 1)

    real = heartbeat_claims.claimed_by
    return [(heartbeat_claims, "claimed_by", claimed_by)]


def worker_that_never_lets_go() -> Replacements:
    """A run that was stopped stays on the worker's list."""
    return [(Holdings, "drop", lambda holdings, keys: None)]


def claims_of_the_dead() -> Replacements:
    """Whoever asks is given tasks, whatever became of its session."""
    return [(sqlite_moves, "is_live", lambda status, in_time: True)]


def bodies_that_outlast_the_session() -> Replacements:
    """A worker that is cut off stops its bodies when the session has ended, rather than before."""
    return [(cutoff, "MARGIN", -2)]


# ---------------------------------------------------------------- recovery


def scan_and_write_apart() -> Replacements:
    """What was found in one transaction is written in another, without looking again."""

    async def recover_lost_runs(database: Database) -> int:
        found = await database.read(lambda session: recoveries._orphans(session, 100))

        async def orphans(session: Session, limit: int) -> dict[int, recoveries.Orphan]:
            return found

        async def write(session: Session) -> int:
            kept = [(recoveries, "_orphans", orphans), (recoveries, "_is_orphan", lambda row, claim: True)]
            with planted(lambda: kept):
                return await recoveries.recover_claims(session, 10)

        return await database.transact(write) if found else 0

    return [(repairs, "recover_lost_runs", recover_lost_runs)]


def claim_left_behind() -> Replacements:
    """A recovery writes its history and forgets the claim."""

    async def end_claims(session: Session, rows: Sequence[dict[str, Any]]) -> None:
        await session.insert(runs, rows)

    return [(recoveries, "end_claims", end_claims)]


# ---------------------------------------------------------------- graphs


def shallow_clear() -> Replacements:
    """What waits for a cleared task is left as it is."""

    async def only_these(session: Session, job_id: int, roots: Sequence[int]) -> Downstream:
        found = await find_downstream(session, job_id, roots)
        return Downstream(found.parents, {task: found.tasks[task] for task in roots})

    return [(clears, "find_downstream", only_these), (clear_inputs, "find_downstream", only_these)]


def lost_decrement() -> Replacements:
    """Of several that became nearer to their beginning, one is not told."""

    async def shift(session: Session, column: Column[Any], by: Mapping[int, int]) -> None:
        told = dict(sorted(by.items())[:-1]) if column is tasks.c.unmet_count and len(by) > 1 else by
        await real(session, column, told)

    real = counters.shift
    return [(ripples, "shift", shift)]


def children_before_the_completion() -> Replacements:
    """What a run made is stored in a transaction of its own, and its completion comes after it."""

    async def take_one(database: Database, worker_id: int, done: Done, draw: Any) -> Receipt:
        assert done.children is not None
        job_id = await database.read(
            lambda session: session.scalar(select(tasks.c.job_id).where(tasks.c.id == done.task_id))
        )
        made = done.children.submission(job_id, done.task_id, done.epoch)
        await database.transact(lambda session: extend_job(session, made))
        plain = replace(done, children=None)
        return await database.transact(lambda session: reports.take_reports(session, worker_id, [plain], draw))

    return [(batches, "_take_one", take_one), (batches, "GROWTH_MAX", 0)]


def clear_that_keeps_the_children() -> Replacements:
    """The next run makes its tasks beside those of the last one."""

    async def find_lasting(session: Session, job_id: int, roots: Sequence[int]) -> Downstream:
        found = await find_downstream(session, job_id, roots)
        found.made.clear()
        return found

    return [(clears, "find_downstream", find_lasting), (clear_inputs, "find_downstream", find_lasting)]


def consumers_that_do_not_wait_for_what_is_returned() -> Replacements:
    return [(expansions, "_edges", lambda *_: [])]


MISTAKES: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        no_fence,
        fence_by_status_only,
        no_new_epoch_at_claim,
        no_new_epoch_at_retry,
        late_reports_told_each_time,
        repeats_taken_for_conflicts,
        clock_of_the_worker,
        session_that_comes_back,
        outage_taken_for_a_crash,
        beat_that_asks_for_nothing,
        beat_that_takes_what_is_on_its_way,
        worker_that_never_lets_go,
        claims_of_the_dead,
        bodies_that_outlast_the_session,
        scan_and_write_apart,
        claim_left_behind,
        shallow_clear,
        lost_decrement,
        children_before_the_completion,
        clear_that_keeps_the_children,
        consumers_that_do_not_wait_for_what_is_returned,
        *TABLE_MISTAKES,
    )
}

_DEADLY = ("crash", "more_hosts", "submit")
_ENDS = ("crash", "hang", "drain", "keep", "cancel", "clear")
_ENDS_EARLY = ("cancel", "crash", "hang", "outage")
_MORE = ("more_hosts", "drain", "report_again", "claim_again", "beat_again")
WEATHER = {
    "fence_by_status_only": Weather(favours=("report_again", "clear", *_DEADLY)),
    "scan_and_write_apart": Weather(slowness=30.0, zealous=True, favours=("deafen", *_DEADLY)),
    "bodies_that_outlast_the_session": Weather(
        favours=("hang", "submit", "more_hosts"), spares=("crash", "cancel", "drain", "outage")
    ),
    "late_reports_told_each_time": Weather(lossy=8.0, favours=("report_again", "clear", *_DEADLY)),
    "claims_of_the_dead": Weather(favours=("deafen", "submit", "clear")),
    "session_that_comes_back": Weather(favours=("beat_again", *_DEADLY)),
    "beat_that_asks_for_nothing": Weather(lossy=8.0, favours=("claim_again", "submit"), spares=_ENDS),
    "outage_taken_for_a_crash": Weather(favours=("outage", "submit", "clear")),
    "worker_that_never_lets_go": Weather(favours=("clear", "submit"), spares=("crash", "drain", "hang", "outage")),
    "claim_left_behind": Weather(favours=_DEADLY),
    "unpin_at_start": Weather(favours=("submit", "extend", *_DEADLY)),
    "consumers_that_do_not_wait_for_what_is_returned": Weather(
        favours=("submit", "clear"), spares=("drain", "deafen", *_ENDS_EARLY)
    ),
    "claims_that_end_without_a_word": Weather(favours=("clear", "submit"), spares=_ENDS_EARLY),
    "references_that_end_with_the_claim": Weather(
        favours=("clear", "submit", "retry"), spares=("deafen", *_ENDS_EARLY, *_MORE)
    ),
    "clear_that_pins_nothing": Weather(favours=("clear", "submit", "retry"), spares=("deafen", *_ENDS_EARLY)),
    "clear_that_does_not_ask": Weather(favours=("clear", "submit"), spares=_ENDS_EARLY),
    "beat_that_takes_what_is_on_its_way": Weather(slowness=15.0, favours=("submit", "clear"), spares=("hang",)),
}
"""In which some of them show sooner."""


# ---------------------------------------------------------------- no mistakes


def everyone_leads_for_ever() -> Replacements:
    """Leading only saves work: whoever led once may go on for ever."""

    async def always(self: leader.Leader) -> bool:
        return True

    return [(leader.Leader, "try_to_lead", always)]


HARMLESS: dict[str, Plant] = {plant.__name__: plant for plant in (everyone_leads_for_ever,)}
