"""When a task or a group runs, given how what it waits for has ended; kept in counters, never by looking at all inputs.

Four rules wait for all inputs and differ in the ends that they bear; two need one input only. `unmet`: what still holds
the node back, 0 once it may run. `awaited`, for the rules that need one: inputs that may still meet it.
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
"""A rule, or its name."""

ONE = frozenset({When.ONE_COMPLETED, When.ONE_FAILED})
"""The rules that need one input only."""

BEARS_FAILED = frozenset({When.ALL_DONE, When.ALWAYS})
BEARS_CANCELLED = frozenset({When.NONE_FAILED, When.ALWAYS})

MET, NEVER = 0, -1
"""What `awaited` is once a rule that needs one input was met, or never will be."""


def check_when(when: object) -> When:
    """The rule of this name."""
    try:
        return When(str(when))
    except ValueError:
        rule = f"one of {', '.join(When)}"
        raise InputError(field="when", value=shorten(when), rule=rule, hint="") from None


class Standing(Enum):
    """What a node means for those who wait for it."""

    OPEN = "open"
    MET = "met"
    SKIPPED = "skipped"
    FAILING = "failing"
    """A group in which something failed, and something goes on."""
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset(Standing) - {Standing.OPEN, Standing.FAILING}
AMISS = frozenset({Standing.FAILING, Standing.FAILED, Standing.CANCELLED})


class Fate(Enum):
    """What comes of a node."""

    WAITS = "waits"
    RUNS = "runs"
    DOOMED = "doomed"
    SKIPPED = "skipped"


@dataclass(slots=True)
class News:
    """How many inputs came to which end."""

    complete: int = 0
    """Completed or skipped."""
    skipped: int = 0
    """Of these, skipped."""
    failed: int = 0
    """Inputs that failed: a group may go on for a while."""
    ended: int = 0
    """Of these, those that have ended. A group may fail first and end later."""
    cancelled: int = 0

    def add(self, standing: Standing) -> None:
        """Count one input that stands like this."""
        self.complete += standing in (Standing.MET, Standing.SKIPPED)
        self.skipped += standing is Standing.SKIPPED
        self.failed += standing in (Standing.FAILING, Standing.FAILED)
        self.ended += standing is Standing.FAILED
        self.cancelled += standing is Standing.CANCELLED


@dataclass(slots=True, frozen=True)
class Verdict:
    """How a node waits, and what comes of it."""

    unmet: int
    awaited: int
    amiss: bool
    """An input failed or was cancelled, of a rule that needs one."""
    fate: Fate


def is_satisfied(when: When, standing: Standing) -> bool:
    """Whether a rule that needs all inputs waits no more for one that stands like this."""
    if standing is Standing.FAILED:
        return when in BEARS_FAILED
    if standing is Standing.CANCELLED:
        return when in BEARS_CANCELLED
    return standing in (Standing.MET, Standing.SKIPPED)


def is_broken(when: When, standing: Standing) -> bool:
    """Whether a rule that needs all inputs can never be met after one that stands like this."""
    if standing in (Standing.FAILED, Standing.FAILING):
        return when not in BEARS_FAILED
    return standing is Standing.CANCELLED and when not in BEARS_CANCELLED


def judge(when: When, inputs: int, news: News) -> Verdict:
    """A node with so many inputs, of which this is known."""
    if when in ONE:
        return _judge_one(when, inputs, False, news)
    met = news.complete
    met += news.ended if when in BEARS_FAILED else 0
    met += news.cancelled if when in BEARS_CANCELLED else 0
    if (news.failed and when not in BEARS_FAILED) or (news.cancelled and when not in BEARS_CANCELLED):
        return Verdict(inputs - met, 0, False, Fate.DOOMED)
    return Verdict(inputs - met, 0, False, Fate.RUNS if inputs == met else Fate.WAITS)


def learn(when: When, unmet: int, awaited: int, amiss: bool, news: News) -> Verdict:
    """The same node once it was told more."""
    if when in ONE:
        if awaited <= MET:
            return Verdict(unmet, awaited, amiss, Fate.WAITS)  # decided before: what ends later changes nothing
        return _judge_one(when, awaited, amiss, news)
    return judge(when, unmet, news)


def decided(awaited: int, amiss: bool) -> Verdict | None:
    """What a node whose rule needs one input was told for good; None if it still waits for that."""
    if awaited > MET:
        return None
    if awaited == MET:
        return Verdict(0, MET, amiss, Fate.RUNS)
    return Verdict(1, NEVER, amiss, Fate.DOOMED if amiss else Fate.SKIPPED)


def _judge_one(when: When, awaited: int, amiss: bool, news: News) -> Verdict:
    failed = news.failed or news.ended  # of a group, the end may be told before the failure
    amiss = amiss or bool(failed or news.cancelled)
    if failed if when is When.ONE_FAILED else news.complete > news.skipped:
        return Verdict(0, MET, amiss, Fate.RUNS)
    left = awaited - news.complete - news.ended - news.cancelled
    if left > 0:
        return Verdict(1, left, amiss, Fate.WAITS)
    return Verdict(1, NEVER, amiss, Fate.DOOMED if amiss else Fate.SKIPPED)
