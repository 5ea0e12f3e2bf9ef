"""A batch of reports is not all or nothing: one that the database refuses fails alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from sqlalchemy.exc import DataError, IntegrityError

from aaiclick.orchestration.models import Failure, Receipt, Report
from aaiclick.orchestration.store.connecting import one_line
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.dialects.contract import causes
from aaiclick.orchestration.store.reports import take_reports

log = logging.getLogger("aaiclick")

REFUSALS = ("22", "23", "54")
"""Classes of SQLSTATE: data that is no such data, a constraint, a limit of the program."""


async def take_each(
    database: Database, worker_id: int, reports: Sequence[Report], draw: Callable[[], float]
) -> Receipt:
    """Take all of them in one transaction; if that cannot be, halve until the bad one is alone, and fail its task."""
    try:
        return await database.transact(lambda session: take_reports(session, worker_id, reports, draw))
    except Exception as error:
        if not _is_refusal(error):
            raise
        if len(reports) == 1:
            return await _refuse(database, worker_id, reports[0], draw, error)
    middle = len(reports) // 2
    receipt = await take_each(database, worker_id, reports[:middle], draw)
    other = await take_each(database, worker_id, reports[middle:], draw)
    waits = [wait for wait in (receipt.due_s, other.due_s) if wait is not None]
    return Receipt(receipt.accepted | other.accepted, receipt.rippling or other.rippling, min(waits, default=None))


async def _refuse(
    database: Database, worker_id: int, report: Report, draw: Callable[[], float], error: Exception
) -> Receipt:
    """What the run came to cannot be stored, and would not be the next time: its task fails with that reason."""
    if isinstance(report, Failure) and report.permanent:
        raise error
    log.error("the report of task %s (epoch %s) cannot be stored: %s", report.task_id, report.epoch, one_line(error))
    said = Failure(report.task_id, report.epoch, f"ReportRefused: {one_line(error)[:1000]}", permanent=True)
    receipt = await database.transact(lambda session: take_reports(session, worker_id, [said], draw))
    return receipt


def _is_refusal(error: Exception) -> bool:
    """The database is there and says no to what it was given, rather than being away or in a deadlock."""
    return any(
        isinstance(step, DataError | IntegrityError)
        or type(step).__name__ in ("DataError", "IntegrityError")  # of a driver that was asked itself
        or str(getattr(step, "sqlstate", ""))[:2] in REFUSALS
        for step in causes(error)
    )
