"""Why a task is not running: what was found of it, weighed in the order in which it would hold the task back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK, LIVE_TASK, JobStatus, TaskStatus
from aaiclick.orchestration.rules.triggers import ONE, When
from aaiclick.orchestration.rules.validation import escape_for_terminal
from aaiclick.wording import counted

UNREPORTED_S_MIN = 10
"""A report that takes so long is worth a word."""


class Reason(StrEnum):
    """What holds a task back."""

    ENDED = "ended"
    """Nothing: it has ended."""
    HELD = "held"
    """Nothing: a worker has it."""
    CLEANUP = "cleanup"
    """Its worker was lost, and it is being cleaned up."""
    JOB_ENDED = "job_ended"
    """Its job has ended."""
    WAITS = "waits"
    """Tasks or groups that come before it, or before a group around it."""
    NEWS = "news"
    """Nothing that it waits for is open, and it is about to be told."""
    DELAYED = "delayed"
    """Its time has not come, as after a failed attempt."""
    UNQUEUED = "unqueued"
    """Nothing, and still it is not in the queue: it is about to be put there."""
    RESERVED = "reserved"
    """Its job is kept for one process, which runs it with `job_test`."""
    NO_WORKER = "no_worker"
    """No worker is live."""
    DRAINING = "draining"
    """All live workers are asked to leave, and take nothing more."""
    BUSY = "busy"
    """All slots of the live workers are taken."""
    IN_LINE = "in_line"
    """Nothing but those before it in the queue."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A task or group that is waited for."""

    id: int
    kind: str
    name: str
    status: str
    """A task's status; of a group, open or failed."""
    open_count: int = 0
    """How many of the tasks and groups directly in a group are not complete."""
    gate: str | None = None
    """The group around the task that waits for it; None if the task itself does."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker, as far as it holds this task or its job."""

    id: int
    name: str | None = None
    hostname: str = ""
    pid: int = 0
    is_live: bool = False
    unreported_s: float = 0.0
    """For how long it has had results that it could not report."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The workers that are live."""

    live: int = 0
    draining: int = 0
    full: int = 0
    """Of those that are not draining: how many have no free slot."""
    slots: int = 0
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found of a task."""

    task_id: int
    job_id: int
    name: str
    status: TaskStatus
    job_status: JobStatus
    now: datetime
    when: When = When.ALL_COMPLETED
    error: str | None = None
    unmet: bool = False
    blockers: Sequence[Blocker] = ()
    more: int = 0
    """How many others it waits for besides `blockers`, at least."""
    is_cut: bool = False
    """It has so many predecessors that not all were looked at."""
    run_after: datetime | None = None
    in_queue: bool = False
    before: int = 0
    """How many are before it in the queue."""
    before_max: int = 1
    """Counting ends here."""
    holder: Holder | None = None
    claimed_at: datetime | None = None
    kept_by: Holder | None = None
    fleet: Fleet = field(default_factory=Fleet)
    has_leader: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """Why a task is not running, for programs (`reason` and the facts) and for people (`line`)."""

    task_id: int
    job_id: int
    name: str
    status: TaskStatus
    reason: Reason
    line: str
    waits_for: Sequence[Blocker] = ()
    more: int = 0
    """How many others it waits for that are not listed."""
    run_after: datetime | None = None
    delay_s: float | None = None
    """Until `run_after`, by the database's time; never below zero."""
    before: int | None = None
    """How many are before it in the queue; counting ends at a thousand."""
    worker_id: int | None = None
    """Who holds it, or is the only one who may."""
    live_workers: int | None = None
    slots: int | None = None
    slots_taken: int | None = None


def judge(facts: Facts) -> Pending:
    """The first thing that holds the task back."""
    reason = find_reason(facts)
    delay_s = None
    if facts.run_after is not None:
        delay_s = max(0.0, (facts.run_after - facts.now).total_seconds())
    asks_fleet = reason in (Reason.NO_WORKER, Reason.DRAINING, Reason.BUSY, Reason.IN_LINE)
    holder = facts.holder if reason is Reason.HELD else facts.kept_by
    return Pending(
        task_id=facts.task_id,
        job_id=facts.job_id,
        name=facts.name,
        status=facts.status,
        reason=reason,
        line=_LINES[reason](facts),
        waits_for=facts.blockers,
        more=facts.more,
        run_after=facts.run_after,
        delay_s=delay_s,
        before=facts.before if facts.in_queue else None,
        worker_id=None if holder is None else holder.id,
        live_workers=facts.fleet.live if asks_fleet else None,
        slots=facts.fleet.slots if asks_fleet else None,
        slots_taken=facts.fleet.taken if asks_fleet else None,
    )


def find_reason(facts: Facts) -> Reason:
    """What comes first of all that holds it back."""
    if facts.status in ENDED_TASK:
        return Reason.ENDED
    if facts.status in LIVE_TASK:
        return Reason.HELD
    if facts.status == TaskStatus.PENDING_CLEANUP:
        return Reason.CLEANUP
    if facts.job_status in ENDED_JOB:
        return Reason.JOB_ENDED
    if facts.unmet:
        return Reason.WAITS if facts.blockers or facts.is_cut else Reason.NEWS
    if facts.run_after is not None:
        return Reason.DELAYED
    if not facts.in_queue:
        return Reason.UNQUEUED
    return Reason.RESERVED if facts.kept_by is not None else _find_in_fleet(facts.fleet)


def _find_in_fleet(fleet: Fleet) -> Reason:
    if not fleet.live:
        return Reason.NO_WORKER
    if fleet.draining == fleet.live:
        return Reason.DRAINING
    return Reason.BUSY if fleet.full == fleet.live - fleet.draining else Reason.IN_LINE


# ---------------------------------------------------------------- in words


def _ended(facts: Facts) -> str:
    words = f"it is {facts.status}"
    if facts.status == TaskStatus.SKIPPED:
        own = (
            f"it runs when {facts.when}, which will not be" if facts.when in ONE else "a group around it is not needed"
        )
        return f"{words}: {own}"
    if facts.blockers:
        return f"{words}: {_listed(facts)}"
    return f"{words}: {_first_line(facts.error)}" if facts.error else words


def _held(facts: Facts) -> str:
    verb = "runs on" if facts.status == TaskStatus.RUNNING else "is claimed by"
    words = f"it {verb} {_worker(facts.holder)}"
    if facts.claimed_at is not None:
        words += f", which has it for {_seconds((facts.now - facts.claimed_at).total_seconds())}"
    if facts.holder is not None and not facts.holder.is_live:
        return f"{words}; that worker is gone: {_leader(facts, 'gives it to others')}"
    if facts.holder is not None and facts.holder.unreported_s >= UNREPORTED_S_MIN:
        words += f"; that worker has not been able to report for {_seconds(facts.holder.unreported_s)}"
    return words


def _cleanup(facts: Facts) -> str:
    return f"its worker was lost: {_leader(facts, 'cleans up after it')}"


def _job_ended(facts: Facts) -> str:
    return f"its job is {facts.job_status}"


def _waits(facts: Facts) -> str:
    return f"it waits for {_WAITED.get(facts.when, '')}{_listed(facts)}"


_WAITED = {
    When.ALL_DONE: "the end of ",
    When.NONE_FAILED: "the end of ",
    When.ALWAYS: "the end of ",
    When.ONE_COMPLETED: "the first to complete of ",
    When.ONE_FAILED: "the first to fail of ",
}


def _news(facts: Facts) -> str:
    return f"all that it waits for is complete, and it is not told yet: {_leader(facts, 'tells it')}"


def _delayed(facts: Facts) -> str:
    assert facts.run_after is not None
    left_s = (facts.run_after - facts.now).total_seconds()
    if left_s > 0:
        return f"it may not run before {facts.run_after.isoformat(timespec='seconds')}, in {_seconds(left_s)}"
    return f"its time has come: {_leader(facts, 'lets it be claimed')}"


def _unqueued(facts: Facts) -> str:
    return f"nothing holds it, and it is not in the queue: {_leader(facts, 'puts it there')}"


def _reserved(facts: Facts) -> str:
    words = f"its job is kept for the process that runs it with job_test, {_worker(facts.kept_by)}"
    if facts.kept_by is not None and not facts.kept_by.is_live:
        return f"{words}; that process is gone: {_leader(facts, 'cancels the job')}"
    return words


def _no_worker(facts: Facts) -> str:
    return f"it is ready ({_before(facts)}), and no worker is live. Run: aaiclick worker start"


def _draining(facts: Facts) -> str:
    fleet = facts.fleet
    return f"it is ready ({_before(facts)}), and all live workers ({fleet.live}) are asked to leave"


def _busy(facts: Facts) -> str:
    fleet = facts.fleet
    active = counted(fleet.live - fleet.draining, "live worker")
    taken = "the only slot" if fleet.slots == 1 else f"all {fleet.slots} slots"
    return f"it is ready ({_before(facts)}), and {taken} of {active} {'is' if fleet.slots == 1 else 'are'} taken"


def _in_line(facts: Facts) -> str:
    return f"it is ready, and a worker will take it: {_before(facts)}"


_LINES = {
    Reason.ENDED: _ended,
    Reason.HELD: _held,
    Reason.CLEANUP: _cleanup,
    Reason.JOB_ENDED: _job_ended,
    Reason.WAITS: _waits,
    Reason.NEWS: _news,
    Reason.DELAYED: _delayed,
    Reason.UNQUEUED: _unqueued,
    Reason.RESERVED: _reserved,
    Reason.NO_WORKER: _no_worker,
    Reason.DRAINING: _draining,
    Reason.BUSY: _busy,
    Reason.IN_LINE: _in_line,
}


def _listed(facts: Facts) -> str:
    words = [_blocker(blocker) for blocker in facts.blockers]
    if not words:
        return f"{facts.more} of very many tasks and groups"
    if facts.more:
        words.append(f"and {facts.more} more")
    return ", ".join(words)


def _blocker(blocker: Blocker) -> str:
    standing = blocker.status
    if blocker.kind == "group" and blocker.status == "open":
        standing = f"{blocker.open_count} of its parts open"
    words = f"{blocker.kind} '{escape_for_terminal(blocker.name)}' ({standing})"
    return words if blocker.gate is None else f"{words}, before the group '{escape_for_terminal(blocker.gate)}'"


def _worker(worker: Holder | None) -> str:
    if worker is None:
        return "a worker"
    name = escape_for_terminal(worker.name or str(worker.id))
    where = f" on {escape_for_terminal(worker.hostname)}, pid {worker.pid}" if worker.hostname else ""
    return f"worker {name}{where}"


def _leader(facts: Facts, does: str) -> str:
    return f"whoever leads {does}" + ("" if facts.has_leader else ", and nobody leads. Run: aaiclick worker start")


def _before(facts: Facts) -> str:
    if not facts.before:
        return "next in line"
    many = f"{facts.before} or more" if facts.before >= facts.before_max else str(facts.before)
    return f"{many} before it"


def _seconds(number: float) -> str:
    return f"{number:.1f} s" if number < 10 else f"{number:.0f} s"


def _first_line(text: str) -> str:
    return escape_for_terminal(text.partition("\n")[0][:200])
