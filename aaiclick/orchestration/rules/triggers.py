"""Trigger rules: whether a task or group (a node) runs, given how its inputs, the nodes before it, have ended.

Decisions are made from counters, so that an ending input never needs a look at all others. Four rules wait for all
inputs and differ in the ends they accept; two need one input only. `unmet` counts what still holds the node back: at
0 it may run. `awaited`, only for rules that need one input, counts the inputs that may still meet the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Literal

from aaiclick.errors import InputError
from aaiclick.orchestration.rules.validation import shorten


class When(StrEnum):
    """The trigger rules."""

    ALL_COMPLETED = "all_completed"
    ALL_DONE = "all_done"
    ONE_COMPLETED = "one_completed"
    ONE_FAILED = "one_failed"
    NONE_FAILED = "none_failed"
    ALWAYS = "always"


Trigger = When | Literal["all_completed", "all_done", "one_completed", "one_failed", "none_failed", "always"]
"""A trigger rule or its name."""

ONE = frozenset({When.ONE_COMPLETED, When.ONE_FAILED})
"""The rules that need one input only."""

BEARS_FAILED = frozenset({When.ALL_DONE, When.ALWAYS})
BEARS_CANCELLED = frozenset({When.NONE_FAILED, When.ALWAYS})

MET, NEVER = 0, -1
"""Values of `awaited` once a rule that needs one input was met, or can no longer be met."""


def check_when(when: object) -> When:
    """Return the rule of this name, or raise InputError."""
    try:
        return When(str(when))
    except ValueError:
        rule = f"it must be one of {', '.join(When)}"
        raise InputError(field="when", value=shorten(when), rule=rule, hint="") from None


class Standing(Enum):
    """The state of an input, as far as it matters to the nodes that wait for it."""

    OPEN = "open"
    MET = "met"
    SKIPPED = "skipped"
    FAILING = "failing"
    """A group in which a member failed while others have not ended."""
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset(Standing) - {Standing.OPEN, Standing.FAILING}
AMISS = frozenset({Standing.FAILING, Standing.FAILED, Standing.CANCELLED})


class Fate(Enum):
    """The decision about a node: it waits on, runs, is doomed to UPSTREAM_FAILED, or is skipped."""

    WAITS = "waits"
    RUNS = "runs"
    DOOMED = "doomed"
    SKIPPED = "skipped"


@dataclass(slots=True)
class News:
    """The number of a node's inputs by how they ended."""

    complete: int = 0
    """Completed or skipped."""
    skipped: int = 0
    """Those of `complete` that were skipped."""
    failed: int = 0
    """Inputs that failed, including groups that have not ended."""
    ended: int = 0
    """Those of `failed` that have ended; a group may fail first and end later."""
    cancelled: int = 0

    def add(self, standing: Standing) -> None:
        """Count one input of this standing."""
        self.complete += standing in (Standing.MET, Standing.SKIPPED)
        self.skipped += standing is Standing.SKIPPED
        self.failed += standing in (Standing.FAILING, Standing.FAILED)
        self.ended += standing is Standing.FAILED
        self.cancelled += standing is Standing.CANCELLED


@dataclass(slots=True, frozen=True)
class Verdict:
    """The counters of a node, and its fate."""

    unmet: int
    awaited: int
    amiss: bool
    """Whether an input failed or was cancelled; only for rules that need one input."""
    fate: Fate


def is_satisfied(when: When, standing: Standing) -> bool:
    """Return whether a rule that needs all inputs no longer waits for an input of this standing."""
    if standing is Standing.FAILED:
        return when in BEARS_FAILED
    if standing is Standing.CANCELLED:
        return when in BEARS_CANCELLED
    return standing in (Standing.MET, Standing.SKIPPED)


def is_broken(when: When, standing: Standing) -> bool:
    """Return whether an input of this standing makes a rule that needs all inputs impossible to meet."""
    if standing in (Standing.FAILED, Standing.FAILING):
        return when not in BEARS_FAILED
    return standing is Standing.CANCELLED and when not in BEARS_CANCELLED


def judge(when: When, inputs: int, news: News) -> Verdict:
    """Judge a node with so many inputs, of which `news` have ended."""
    if when in ONE:
        return _judge_one(when, inputs, False, news)
    met = news.complete
    met += news.ended if when in BEARS_FAILED else 0
    met += news.cancelled if when in BEARS_CANCELLED else 0
    if (news.failed and when not in BEARS_FAILED) or (news.cancelled and when not in BEARS_CANCELLED):
        return Verdict(inputs - met, 0, False, Fate.DOOMED)
    return Verdict(inputs - met, 0, False, Fate.RUNS if inputs == met else Fate.WAITS)


def learn(when: When, unmet: int, awaited: int, amiss: bool, news: News) -> Verdict:
    """Judge a node again from its stored counters, when further inputs have ended."""
    if when in ONE:
        if awaited <= MET:
            return Verdict(unmet, awaited, amiss, Fate.WAITS)  # decided earlier: later ends change nothing
        return _judge_one(when, awaited, amiss, news)
    return judge(when, unmet, news)


def decided(awaited: int, amiss: bool) -> Verdict | None:
    """Return the final verdict of a node whose rule needs one input; None if it still waits."""
    if awaited > MET:
        return None
    if awaited == MET:
        return Verdict(0, MET, amiss, Fate.RUNS)
    return Verdict(1, NEVER, amiss, Fate.DOOMED if amiss else Fate.SKIPPED)


def _judge_one(when: When, awaited: int, amiss: bool, news: News) -> Verdict:
    failed = news.failed or news.ended  # a group's end may arrive before its failure
    amiss = amiss or bool(failed or news.cancelled)
    if failed if when is When.ONE_FAILED else news.complete > news.skipped:
        return Verdict(0, MET, amiss, Fate.RUNS)
    left = awaited - news.complete - news.ended - news.cancelled
    if left > 0:
        return Verdict(1, left, amiss, Fate.WAITS)
    return Verdict(1, NEVER, amiss, Fate.DOOMED if amiss else Fate.SKIPPED)
