"""Decides why a task is not running: takes the stored facts of a task and returns the first reason that applies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from aaiclick.orchestration.rules.node_standings import NodeStanding, told
from aaiclick.orchestration.rules.states import ENDED_JOB, ENDED_TASK, LIVE_TASK, JobStatus, TaskStatus
from aaiclick.orchestration.rules.triggers import ONE, When
from aaiclick.orchestration.rules.validation import escape_for_terminal
from aaiclick.wording import counted

UNREPORTED_S_MIN = 10
"""Seconds after which a worker's unreported results are mentioned."""


class Reason(StrEnum):
    """Why a task is not running."""

    ENDED = "ended"
    """The task has ended."""
    HELD = "held"
    """A worker has claimed or runs the task."""
    CLEANUP = "cleanup"
    """The task's worker was lost, and the task is in PENDING_CLEANUP."""
    JOB_ENDED = "job_ended"
    """The task's job has ended."""
    WAITS = "waits"
    """Tasks or groups that precede the task, or a group that contains it, are open."""
    NEWS = "news"
    """Nothing that the task waits for is open any more, but a postponed ripple has not updated its counter yet."""
    DELAYED = "delayed"
    """The task's `run_after` has not come, as after a failed attempt."""
    UNQUEUED = "unqueued"
    """The task waits for nothing, but it is not in the queue yet."""
    RESERVED = "reserved"
    """The job is reserved for one process, which runs it with `job_test`."""
    NO_WORKER = "no_worker"
    """No worker is live."""
    DRAINING = "draining"
    """All live workers are draining and claim no more tasks."""
    PLACEMENT = "placement"
    """No node that is open and alive meets the task's needs."""
    LIMITED = "limited"
    """The nodes that meet its needs run as many tasks of its function as they may."""
    WISHED = "wished"
    """The nodes that may run it leave it to others that it wishes for, or that its last attempt did not fail on."""
    BUSY = "busy"
    """All slots of the live workers that are not draining are taken."""
    IN_LINE = "in_line"
    """Only the tasks before it in the queue."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A task or group that the task waits for."""

    id: int
    kind: str
    name: str
    status: str
    """The status of a task; "open" or "failed" for a group."""
    open_count: int = 0
    """The number of tasks and groups directly in a group that are not complete."""
    gate: str | None = None
    """The name of the group around the task that waits for the blocker; None if the task itself waits."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The worker that holds the task, or that its job is reserved for."""

    id: int
    name: str | None = None
    hostname: str = ""
    pid: int = 0
    is_live: bool = False
    unreported_s: float = 0.0
    """Seconds since when the worker has had results that it could not report."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The live workers, counted, with their slots."""

    live: int = 0
    draining: int = 0
    """Those that are asked to leave, or whose node is cordoned."""
    full: int = 0
    """The number of workers that are not draining and have no free slot."""
    slots: int = 0
    taken: int = 0


@dataclass(frozen=True, slots=True)
class Facts:
    """The stored facts of a task from which `judge` decides."""

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
    """A lower bound of how many others the task waits for besides `blockers`."""
    is_cut: bool = False
    """Whether the task has so many predecessors that not all were read."""
    run_after: datetime | None = None
    in_queue: bool = False
    before: int = 0
    """The number of tasks before it in the queue."""
    before_max: int = 1
    """The limit at which that count ended."""
    holder: Holder | None = None
    claimed_at: datetime | None = None
    kept_by: Holder | None = None
    fleet: Fleet = field(default_factory=Fleet)
    has_leader: bool = False
    needs: Mapping[str, Any] = field(default_factory=dict)
    """What it needs of its worker's node."""
    nodes: Sequence[NodeStanding] = ()
    """For each node what keeps it from running the task, if the task has needs."""


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
    """How many others the task waits for that are not in `waits_for`."""
    run_after: datetime | None = None
    delay_s: float | None = None
    """Seconds until `run_after`, by the database's time; never below zero."""
    before: int | None = None
    """The number of tasks before it in the queue; counting ends at a thousand."""
    worker_id: int | None = None
    """The worker that holds the task, or for which its job is reserved."""
    live_workers: int | None = None
    slots: int | None = None
    slots_taken: int | None = None
    needs: Mapping[str, Any] = field(default_factory=dict)
    """What a ready task needs of its worker's node."""
    nodes: Sequence[NodeStanding] = ()
    """For each node what keeps it from running a ready task that has needs."""


def judge(facts: Facts) -> Pending:
    """Return why the task is not running, with the facts and the sentence that belong to the reason."""
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
        needs=facts.needs,
        nodes=facts.nodes,
    )


def find_reason(facts: Facts) -> Reason:
    """Return the first reason that applies, in the order in which they would hold the task back."""
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
    if facts.kept_by is not None:
        return Reason.RESERVED
    if facts.needs and facts.fleet.live and all(node.missing for node in facts.nodes):
        return Reason.LIMITED if any(node.is_full for node in facts.nodes) else Reason.PLACEMENT
    if facts.needs and facts.fleet.live and all(node.missing or node.later for node in facts.nodes):
        return Reason.WISHED
    return _find_in_fleet(facts.fleet)


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
            f"its trigger rule {facts.when} cannot be met"
            if facts.when in ONE
            else "a group that contains it is not needed"
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
    return f"everything it waits for is complete, but it has not been told yet: {_leader(facts, 'tells it')}"


def _delayed(facts: Facts) -> str:
    assert facts.run_after is not None
    left_s = (facts.run_after - facts.now).total_seconds()
    if left_s > 0:
        return f"it may not run before {facts.run_after.isoformat(timespec='seconds')}, in {_seconds(left_s)}"
    return f"its time has come: {_leader(facts, 'lets it be claimed')}"


def _unqueued(facts: Facts) -> str:
    return f"nothing holds it, and it is not in the queue: {_leader(facts, 'puts it there')}"


def _reserved(facts: Facts) -> str:
    words = f"its job is reserved for the process that runs it with job_test, {_worker(facts.kept_by)}"
    if facts.kept_by is not None and not facts.kept_by.is_live:
        return f"{words}; that process is gone: {_leader(facts, 'cancels the job')}"
    return words


def _no_worker(facts: Facts) -> str:
    return f"it is ready ({_before(facts)}), and no worker is live. Run: aaiclick worker start"


def _draining(facts: Facts) -> str:
    fleet = facts.fleet
    return f"it is ready ({_before(facts)}), and all live workers ({fleet.live}) are draining or cordoned"


def _placement(facts: Facts) -> str:
    return f"it is ready, and no node may run it: {told(facts.nodes)}"


def _limited(facts: Facts) -> str:
    full = [node for node in facts.nodes if node.is_full]
    return f"it is ready ({_before(facts)}), and the nodes that meet its needs are full: {told(full)}"


def _wished(facts: Facts) -> str:
    return f"it is ready, and the nodes that may run it leave it to others for now: {told(facts.nodes)}"


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
    Reason.PLACEMENT: _placement,
    Reason.LIMITED: _limited,
    Reason.WISHED: _wished,
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
    return f"the leader {does}" + ("" if facts.has_leader else ", and no process leads. Run: aaiclick worker start")


def _before(facts: Facts) -> str:
    if not facts.before:
        return "next in line"
    many = f"{facts.before} or more" if facts.before >= facts.before_max else str(facts.before)
    return f"{many} before it"


def _seconds(number: float) -> str:
    return f"{number:.1f} s" if number < 10 else f"{number:.0f} s"


def _first_line(text: str) -> str:
    return escape_for_terminal(text.partition("\n")[0][:200])
