"""Find the run that broke an expectation.

The suspects are the writes in the log of operations between the last check that passed and the first that did not.
"""

from __future__ import annotations

from dataclasses import dataclass

from aaiclick.data.lineage import lineage
from aaiclick.data.provenance.operation_log import Operation
from aaiclick.data.views import Windowed

PASSED = "expect_passed"
UNMET = ("expect_warned", "expect_failed")


@dataclass(frozen=True)
class Breakage:
    """Expectations of an Object that are no longer met, and the writes that may be the cause."""

    unmet: Operation
    """The first check that did not pass; its `query` holds what was found."""
    passed: Operation | None
    """The last check before it that passed; None if the log has none."""
    suspects: tuple[Operation, ...]
    """The operations between the two, on this Object or upstream, with job and task; the oldest first."""


async def broken_by(of: Windowed | str) -> Breakage | None:
    """Return what may have broken an Object's expectations; None if its last check passed or the log has no check."""
    found = await lineage(of)
    looks = [each for each in found.operations if each.result == found.table and each.operation in (PASSED, *UNMET)]
    if not looks or looks[-1].operation == PASSED:
        return None
    good = max((number for number, each in enumerate(looks) if each.operation == PASSED), default=-1)
    unmet, passed = looks[good + 1], looks[good] if good >= 0 else None
    written = (each for each in found.operations if each.operation not in (PASSED, *UNMET))
    suspects = tuple(each for each in written if each.at <= unmet.at and (passed is None or each.at > passed.at))
    return Breakage(unmet, passed, suspects)
