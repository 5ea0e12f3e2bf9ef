"""Preparing the values of a submission: Objects are copied into tables of the job, large values become tables.

The values are the arguments of the tasks, and the result of the workflow if it is known already.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from aaiclick.backend import get_ch_url
from aaiclick.config import settings
from aaiclick.ids import new_id
from aaiclick.orchestration.coordinator.contract import Submitter
from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.values.large_values import arguments_with, is_too_large, large_arguments, value_with
from aaiclick.orchestration.rules.values.reference_marks import mentions_objects
from aaiclick.orchestration.rules.values.run_tables import (
    run_table,
    tables_named,
    temporary_tables_named,
    value_with_tables,
    with_tables,
)

if TYPE_CHECKING:
    from aaiclick.data.provenance.operation_log import Oplog

log = logging.getLogger("aaiclick")


async def submit_given(coordinator: Submitter, submission: Submission) -> Job:
    """Submit a graph. Tables that would be dropped with a `data_context`, or with another job, are copied first.

    The copies are registered before they are made. The submission's transaction pins them for the tasks that need
    them. If it fails, or if the job's key exists already, they are left to the table dropper.
    """
    texts = list(_texts(submission))
    sources = await _sources(coordinator, submission.job_id, texts) if texts else []
    if not sources and not any(text.is_heavy for text in texts):
        return await coordinator.submit(submission)
    submission.refuse_exposed()  # before any value is written to ClickHouse
    names = (run_table(maker, 0, number) for maker in [new_id()] for number in itertools.count(1))
    copies = {source: next(names) for source in sources}
    blobs: dict[str, str] = {}
    try:
        for text in texts:
            text.change(copies, names, blobs)
        await _make(coordinator, submission, copies, blobs)
        job = await coordinator.submit(submission)
    except BaseException:
        for text in texts:
            text.put(text.before)
        await _leave(coordinator, [*copies.values(), *blobs])
        raise
    if job.id != submission.job_id:  # a job with this key exists: nothing was added
        await _leave(coordinator, [*copies.values(), *blobs])
    return job


class _Text:
    """An encoded value of the submission that must be changed: the arguments of a task, or the result of a workflow.

    `names_tables`: it refers to tables of Objects. `is_heavy`: it is too large to be stored in the database.
    """

    __slots__ = ("before", "holder", "is_heavy", "names_tables")

    def __init__(self, holder: Task | Job, text: str, names_tables: bool, is_heavy: bool) -> None:
        self.holder, self.before, self.names_tables, self.is_heavy = holder, text, names_tables, is_heavy

    def put(self, text: str) -> None:
        if isinstance(self.holder, Job):
            self.holder.result_json = text
        else:
            self.holder.kwargs_json = text

    def change(self, copies: Mapping[str, str], names: Iterator[str], blobs: dict[str, str]) -> None:
        """Replace tables by their copies, and large values by references to new tables.

        `blobs` gets the text of each new table; the caller writes these.
        """
        text, is_result = self.before, isinstance(self.holder, Job)
        if self.names_tables:
            text = (value_with_tables if is_result else with_tables)(text, copies)
        if self.is_heavy and is_result:
            table = next(names)
            blobs[table], text = text, value_with(text, table)
        elif self.is_heavy:
            large = large_arguments(text, settings().value_bytes_max)
            tables = {argument: next(names) for argument in large}
            blobs.update({tables[argument]: written for argument, written in large.items()})
            text = arguments_with(text, tables)
        self.put(text)


def _texts(submission: Submission) -> Iterator[_Text]:
    """Yield the values of the submission that name tables or are too large."""
    limit = settings().value_bytes_max
    given: list[tuple[Task | Job, str | None]] = [(task, task.kwargs_json) for task in submission.tasks]
    if submission.new_job is not None:
        given.append((submission.new_job, submission.new_job.result_json))
    for holder, text in given:
        if text is not None:
            naming, heavy = mentions_objects(text), is_too_large(text, limit)
            if naming or heavy:
                yield _Text(holder, text, naming, heavy)


async def _sources(coordinator: Submitter, job_id: int, texts: Sequence[_Text]) -> list[str]:
    """Return the tables to copy: those of other jobs, and temporary ones, which end with their `data_context`."""
    written = [text.before for text in texts if text.names_tables]
    foreign = set().union(*map(tables_named, written))
    if foreign:
        foreign = await coordinator.tables_of_others(job_id, foreign)
    return sorted(set().union(foreign, *map(temporary_tables_named, written)))


async def _make(
    coordinator: Submitter, submission: Submission, copies: Mapping[str, str], blobs: Mapping[str, str]
) -> None:
    """Copy tables and write large values to tables. All are registered first, so that a crash leaves none unknown."""
    from aaiclick.data.clients.opening import close_client, open_client  # here, to keep start-up light
    from aaiclick.data.provenance.operation_log import Oplog  # here, to keep start-up light
    from aaiclick.data.tables.blobs import write_blob  # here, to keep start-up light
    from aaiclick.data.tables.lifetimes import clone  # here, to keep start-up light

    mode = None if submission.new_job is None else submission.new_job.preservation_mode
    installation = await coordinator.register_tables(submission.job_id, [*copies.values(), *blobs], mode)
    url = get_ch_url()
    client = await open_client(url)
    try:
        if copies:
            await clone(client, copies, job_id=submission.job_id, installation=installation)
            await _note(Oplog(client, submission.job_id), copies)
        for table, text in blobs.items():
            await write_blob(client, table, text, job_id=submission.job_id, installation=installation)
    finally:
        await close_client(url)


async def _note(oplog: Oplog, copies: Mapping[str, str]) -> None:
    """Record the copies in the operation log, if it is enabled."""
    from aaiclick.data.provenance.column_sources import SAME  # here, to keep start-up light

    if settings().oplog:
        for source, copy in copies.items():
            await oplog.note("copy", copy, [source], "", SAME)
        await oplog.flush()


async def _leave(coordinator: Submitter, tables: Sequence[str]) -> None:
    """Leave these tables to the table dropper."""
    try:
        await coordinator.leave_tables(tables)
    except Exception as error:  # must not hide the caller's own error; the tables are found later, by their age
        log.warning("copies of Objects are dropped later: %s", error)
