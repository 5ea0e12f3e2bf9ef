"""Which run broke it: from the log of operations, what was written between the last good look and the first bad one."""

from __future__ import annotations

from dataclasses import dataclass

from aaiclick.data.lineage import lineage
from aaiclick.data.provenance.operation_log import Operation
from aaiclick.data.views import Windowed

PASSED = "expect_passed"
UNMET = ("expect_warned", "expect_failed")


@dataclass(frozen=True)
class Breakage:
    """An expectation that was met once and is not any more."""

    unmet: Operation
    """The first look that found it so; its `query` says what was found."""
    passed: Operation | None
    """The last look before that found all well; None if there was none."""
    suspects: tuple[Operation, ...]
    """What was written in between, here or further up, with job and task; the oldest first."""


async def broken_by(of: Windowed | str) -> Breakage | None:
    """What may have broken an Object; None if its last expectations were met, or none are in the log."""
    found = await lineage(of)
    looks = [each for each in found.operations if each.result == found.table and each.operation in (PASSED, *UNMET)]
    if not looks or looks[-1].operation == PASSED:
        return None
    good = max((number for number, each in enumerate(looks) if each.operation == PASSED), default=-1)
    unmet, passed = looks[good + 1], looks[good] if good >= 0 else None
    written = (each for each in found.operations if each.operation not in (PASSED, *UNMET))
    suspects = tuple(each for each in written if each.at <= unmet.at and (passed is None or each.at > passed.at))
    return Breakage(unmet, passed, suspects)
