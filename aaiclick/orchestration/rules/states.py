"""The states of jobs, tasks and workers, and the only moves between them.

The tables below are the single source: `store/transitions` applies them, and
`python -m aaiclick.orchestration.rules.states` prints `docs/reference/states.md` from them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar


class JobStatus(StrEnum):
    """The status of a job."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskStatus(StrEnum):
    """The status of a task."""

    PENDING = "pending"
    CLAIMED = "claimed"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PENDING_CLEANUP = "pending_cleanup"
    UPSTREAM_FAILED = "upstream_failed"
    SKIPPED = "skipped"


class WorkerStatus(StrEnum):
    """The status of a worker."""

    ACTIVE = "active"
    IDLE = "idle"
    STOPPING = "stopping"
    STOPPED = "stopped"


class RunOutcome(StrEnum):
    """Why a claim ended, and with it its run."""

    COMPLETED = "completed"
    FAILED = "failed"
    CRASHED = "crashed"
    SKIPPED = "skipped"
    RELEASED = "released"
    LOST = "lost"
    CANCELLED = "cancelled"
    CLEARED = "cleared"
    REPAIRED = "repaired"
    """A repair removed a claim that no longer belonged to a run. No run ends with this outcome."""


class RunType(StrEnum):
    """Whether a schedule or a person or program started a job."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"


class PreservationMode(StrEnum):
    """Whether a job's unreferenced tables are dropped at once (NONE), or kept until the job's TTL (FULL)."""

    NONE = "none"
    FULL = "full"


PRESERVATION_NONE = PreservationMode.NONE
PRESERVATION_FULL = PreservationMode.FULL

State = TypeVar("State", bound=StrEnum)


class Move(NamedTuple, Generic[State]):
    """A named transition from any of its source states to its target."""

    name: str
    sources: frozenset[State]
    target: State
    meaning: str


def _moves(*rows: tuple[str, Iterable[State], State, str]) -> Mapping[str, Move[State]]:
    return MappingProxyType({name: Move(name, frozenset(sources), to, why) for name, sources, to, why in rows})


_T = TaskStatus
_J = JobStatus

COMPLETE_TASK = frozenset({_T.COMPLETED, _T.SKIPPED})
"""The statuses that satisfy dependent tasks."""
ENDED_TASK = frozenset({*COMPLETE_TASK, _T.FAILED, _T.CANCELLED, _T.UPSTREAM_FAILED})
FAILED_TASK = frozenset({_T.FAILED, _T.UPSTREAM_FAILED})
"""The statuses of a critical task that fail its job."""
LIVE_TASK = frozenset({_T.CLAIMED, _T.RUNNING})
ENDED_JOB = frozenset({_J.COMPLETED, _J.FAILED, _J.CANCELLED})

TASK_MOVES = _moves(
    # move, from, to, what happened; every way back to PENDING makes the epoch grow
    ("claim", {_T.PENDING}, _T.CLAIMED, "a worker took it; the epoch grows"),
    ("release", LIVE_TASK, _T.PENDING, "the worker gave it back; the epoch grows"),
    ("start", {_T.CLAIMED}, _T.RUNNING, "its body began"),
    ("complete", LIVE_TASK, _T.COMPLETED, "its body returned; from claimed if the start was folded in"),
    ("fail", LIVE_TASK, _T.PENDING_CLEANUP, "its body raised an error, or its process died"),
    ("recover", LIVE_TASK, _T.PENDING_CLEANUP, "its worker's session was lost; the epoch grows"),
    ("retry", {_T.PENDING_CLEANUP}, _T.PENDING, "cleaned up; it runs again after its delay"),
    ("give_up", {_T.PENDING_CLEANUP}, _T.FAILED, "cleaned up; no attempt is left"),
    ("doom", {_T.PENDING}, _T.UPSTREAM_FAILED, "something it waits for will never complete"),
    ("skip", {_T.PENDING}, _T.SKIPPED, "its trigger rule will never be met, and nothing it waits for failed"),
    ("leave_out", LIVE_TASK, _T.SKIPPED, "its body said that there is nothing to do"),
    ("cancel", frozenset(_T) - ENDED_TASK, _T.CANCELLED, "it or its job was cancelled"),
    ("clear", _T, _T.PENDING, "it is to run again; the epoch grows"),
)

JOB_MOVES = _moves(
    ("start", {_J.PENDING}, _J.RUNNING, "its first task was claimed"),
    ("complete", {_J.RUNNING}, _J.COMPLETED, "every task ended, and no critical task failed"),
    (
        "fail",
        {_J.PENDING, _J.RUNNING},
        _J.FAILED,
        "every task ended and a critical one failed, or its time limit was exceeded",
    ),
    ("cancel", {_J.PENDING, _J.RUNNING}, _J.CANCELLED, "someone stopped it"),
    ("reactivate", ENDED_JOB, _J.RUNNING, "one of its tasks was cleared"),
)

LATE_REPORT = "late_report"
"""The event of a report that arrived after its run's claim had ended."""

CACHE_HIT, CACHE_MISS = "cache_hit", "cache_miss"
"""The events of runs that asked for a remembered result."""

UNMET = MappingProxyType({"expect_warned": "warned", "expect_failed": "failed"})
"""Events of expectations that were not met, and the outcome of each: a warning, or an error in the body."""

TASK_NOTES = MappingProxyType(
    {
        "expect_warned": "its body found data that did not meet an expectation, and went on",
        "expect_failed": "its body found data that did not meet an expectation, which raised an error",
        LATE_REPORT: "a run reported its result after it was lost, released, cleared or cancelled: once per run, "
        "with its epoch and worker",
        CACHE_HIT: "its result was taken from the cache, from the task in the detail; its body did not run",
        CACHE_MISS: "there was no cached result, or it was to be refreshed; its body ran",
        "remove": "it was removed because the task whose run made it was cleared",
    }
)
JOB_NOTES = MappingProxyType(
    {
        "create": "it was submitted",
        "grow": "tasks were added to it",
        "repair": "wrong counters were corrected",
    }
)
"""Events that are not moves: they record what happened and change no status."""


def sources(move: str) -> frozenset[TaskStatus]:
    """Return the states from which a task may make the move."""
    return TASK_MOVES[move].sources


def target(move: str) -> TaskStatus:
    """Return the state in which the move leaves a task."""
    return TASK_MOVES[move].target


def job_sources(move: str) -> frozenset[JobStatus]:
    """Return the states from which a job may make the move."""
    return JOB_MOVES[move].sources


def job_target(move: str) -> JobStatus:
    """Return the state in which the move leaves a job."""
    return JOB_MOVES[move].target


# ---------------------------------------------------------------- the page


def states_markdown() -> str:
    """Return the text of `docs/reference/states.md`."""
    return "\n".join(
        [
            "# States",
            "",
            "<!-- printed by `python -m aaiclick.orchestration.rules.states`; a test compares -->",
            "",
            "States are stored in lower case and accepted in either. A move whose task or job is not in one of its "
            "source states changes nothing.",
            "",
            "## Tasks",
            "",
            *_section(TaskStatus, TASK_MOVES, ENDED_TASK),
            "",
            *_notes(TASK_NOTES),
            "",
            "## Jobs",
            "",
            *_section(JobStatus, JOB_MOVES, ENDED_JOB),
            "",
            *_notes(JOB_NOTES),
            "",
        ]
    )


def _section(states: type[State], moves: Mapping[str, Move[State]], ended: frozenset[State]) -> list[str]:
    lines = ["| move | from | to | what happened |", "|---|---|---|---|"]
    lines += [
        f"| `{move.name}` | {_listed(states, move.sources)} | {move.target} | {move.meaning} |"
        for move in moves.values()
    ]
    lines += ["", f"Ended: {_listed(states, ended)}.", "", "```mermaid", "stateDiagram-v2", "    [*] --> pending"]
    for move in moves.values():
        if move.sources != frozenset(states):  # arrows from every state would clutter the diagram
            lines += [f"    {state} --> {move.target}: {move.name}" for state in states if state in move.sources]
    lines += [f"    {state} --> [*]" for state in states if state in ended]
    return [*lines, "```"]


def _notes(notes: Mapping[str, str]) -> list[str]:
    lines = ["Events that change no status:", "", "| event | what happened |", "|---|---|"]
    return [*lines, *(f"| `{name}` | {meaning} |" for name, meaning in notes.items())]


def _listed(states: type[State], some: frozenset[State]) -> str:
    return "any" if some == frozenset(states) else ", ".join(state for state in states if state in some)


if __name__ == "__main__":
    sys.stdout.write(states_markdown())
