"""Storing a batch of reports. A report that the database refuses fails its own task only; the others are stored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from aaiclick.backoff import one_line
from aaiclick.errors import ClaimLost, Conflict, GraphError, InputError, NotFound, TooManyTasks
from aaiclick.orchestration.coordinator.placing import place_children
from aaiclick.orchestration.models import Done, Failure, Receipt, Report
from aaiclick.orchestration.models.children import Children
from aaiclick.orchestration.store.claims.reports import take_reports
from aaiclick.orchestration.store.claims.stale_reports import Refused, answer_lost
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.graphs.expansions import complete_with_children
from aaiclick.orchestration.store.rejections import is_rejected

log = logging.getLogger("aaiclick")

GROWTH_MAX = 2_000
"""The maximum number of tasks and groups that one transaction adds, unless a single run made more."""

UNFIT = (GraphError, Conflict, NotFound, InputError, TooManyTasks)
"""Errors which say that the tasks a run made cannot be added to the graph. They fail the task of that run."""


async def take_each(
    database: Database, worker_id: int, reports: Sequence[Report], draw: Callable[[], float]
) -> Receipt:
    """Store all reports of a batch. Reports of runs that made tasks are stored in transactions of their own.

    Those lock other rows (the graph, the dependents) and may take long. `draw` gives the jitter of retries.
    """
    plain = [report for report in reports if isinstance(report, Failure) or report.children is None]
    receipt = await _take_all(database, worker_id, plain, draw) if plain else Receipt()
    for together in _growths(reports):
        receipt = _both(receipt, await _take_growing(database, worker_id, together, draw))
    return receipt


def _growths(reports: Sequence[Report]) -> list[list[Done]]:
    """Return the reports of runs that made tasks, in batches of one job and at most `GROWTH_MAX` tasks and groups.

    A run that made more, or whose children refer to nodes it did not make, is alone in its batch.
    """
    found: list[list[Done]] = []
    open_of: dict[int, tuple[list[Done], int]] = {}
    for report in reports:
        if not isinstance(report, Done) or report.children is None:
            continue
        size = _size(report.children)
        together, total = open_of.get(report.children.job_id, ([], GROWTH_MAX))
        if total + size > GROWTH_MAX or any(done.task_id == report.task_id for done in together):
            together, total = [], 0
            found.append(together)
        together.append(report)
        open_of[report.children.job_id] = (together, total + size)
    return found


def _size(children: Children) -> int:
    """Return the share of `GROWTH_MAX` that these children use: all of it if they refer to nodes not among them."""
    made = {task.id for task in children.tasks} | {group.id for group in children.groups}
    named = {node for _, node in children.returned} | {edge.previous_id for edge in children.edges}
    return len(made) + 1 if named <= made else GROWTH_MAX


async def _take_growing(
    database: Database, worker_id: int, dones: Sequence[Done], draw: Callable[[], float]
) -> Receipt:
    """Store the reports of runs that made tasks. If one of several is refused, each gets its own transaction."""
    dones = await place_children(database, dones)
    if len(dones) > 1:
        try:
            return await database.transact(lambda session: complete_with_children(session, worker_id, dones))
        except (ClaimLost, *UNFIT):
            log.debug("one of %d runs that made tasks cannot be stored: they are stored one by one", len(dones))
        except Exception as error:
            if not is_rejected(error):
                raise
    receipt = Receipt()
    for done in dones:
        receipt = _both(receipt, await _take_one(database, worker_id, done, draw))
    return receipt


async def _take_one(database: Database, worker_id: int, done: Done, draw: Callable[[], float]) -> Receipt:
    """Store the report of one run that made tasks. If these cannot be added to the graph, its task fails, saying why.

    The failure is permanent: it is not retried.
    """
    try:
        return await database.transact(lambda session: complete_with_children(session, worker_id, [done]))
    except ClaimLost:
        return await database.transact(lambda session: answer_lost(session, worker_id, done))
    except UNFIT as error:
        said = f"{type(error).__name__}: {error}"
    except Exception as error:
        if not is_rejected(error):
            raise
        return await _refuse(database, worker_id, done, draw, error)
    failure = Refused(
        done.task_id, done.epoch, said, permanent=True, log_path=done.log_path, holds=done.holds, report=done
    )
    return await _take_all(database, worker_id, [failure], draw)


async def _take_all(
    database: Database, worker_id: int, reports: Sequence[Report], draw: Callable[[], float]
) -> Receipt:
    """Store the reports in one transaction. If the database refuses it, halve the batch until the bad report is alone.

    The task of the bad report fails.
    """
    try:
        return await database.transact(lambda session: take_reports(session, worker_id, reports, draw))
    except Exception as error:
        if not is_rejected(error):
            raise
        if len(reports) == 1:
            return await _refuse(database, worker_id, reports[0], draw, error)
    middle = len(reports) // 2
    receipt = await _take_all(database, worker_id, reports[:middle], draw)
    return _both(receipt, await _take_all(database, worker_id, reports[middle:], draw))


def _both(receipt: Receipt, other: Receipt) -> Receipt:
    waits = [wait for wait in (receipt.due_s, other.due_s) if wait is not None]
    return Receipt(
        receipt.accepted | other.accepted,
        receipt.rippling or other.rippling,
        min(waits, default=None),
        receipt.conflicts | other.conflicts,
    )


async def _refuse(
    database: Database, worker_id: int, report: Report, draw: Callable[[], float], error: Exception
) -> Receipt:
    """Fail the task of a report that the database refuses, for good: a repeated run would be refused again.

    If the report is itself a permanent failure, the error is raised, since there is nothing else to store.
    """
    if isinstance(report, Failure) and report.permanent:
        raise error
    log.error("the report of task %s (epoch %s) cannot be stored: %s", report.task_id, report.epoch, one_line(error))
    words = f"ReportRefused: {one_line(error)[:1000]}"
    said = Refused(report.task_id, report.epoch, words, permanent=True, holds=report.holds, report=report)
    receipt = await database.transact(lambda session: take_reports(session, worker_id, [said], draw))
    return receipt
