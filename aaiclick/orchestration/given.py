"""Objects among the arguments of what is submitted become the job's own; arguments that are too large become tables."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence

from aaiclick.backend import get_ch_url
from aaiclick.config import settings
from aaiclick.ids import new_id
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.blobs import arguments_with, is_too_large, large_arguments
from aaiclick.orchestration.rules.marks import mentions_objects
from aaiclick.orchestration.rules.run_tables import run_table, tables_named, temporary_tables_named, with_tables
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.table_drops import mark_given
from aaiclick.orchestration.store.table_holds import name_of_installation, register_given
from aaiclick.orchestration.store.table_inputs import of_other_jobs

log = logging.getLogger("aaiclick")


async def submit_given(coordinator: DirectCoordinator, submission: Submission) -> Job:
    """Submit a graph. Tables that would end with a `data_context`, or with another job, are copied for it first.

    The copies are known before they are made, and are pinned for their tasks with the graph, or they go again.
    """
    naming = [task for task in submission.tasks if mentions_objects(task.kwargs_json)]
    heavy = [task for task in submission.tasks if is_too_large(task.kwargs_json, settings().value_bytes_max)]
    sources = await _sources(coordinator.database, submission.job_id, naming) if naming else []
    if not sources and not heavy:
        return await coordinator.submit(submission)
    submission.refuse_exposed()  # before anything of it is written elsewhere
    names = (run_table(maker, 0, number) for maker in [new_id()] for number in itertools.count(1))
    copies = {source: next(names) for source in sources}
    blobs: dict[str, str] = {}
    changed = {task.id: task for task in (*naming, *heavy)}
    texts = {task.id: task.kwargs_json for task in changed.values()}
    try:
        for task in naming:
            task.kwargs_json = with_tables(task.kwargs_json, copies)
        for task in heavy:
            task.kwargs_json = _lightened(task.kwargs_json, names, blobs)
        await _make(coordinator.database, submission, copies, blobs)
        job = await coordinator.submit(submission)
    except BaseException:
        for task in changed.values():
            task.kwargs_json = texts[task.id]
        await _leave(coordinator.database, [*copies.values(), *blobs])
        raise
    if job.id != submission.job_id:  # its key is known: nothing was added
        await _leave(coordinator.database, [*copies.values(), *blobs])
    return job


def _lightened(text: str, names: Iterator[str], blobs: dict[str, str]) -> str:
    """The text of arguments, the largest of which lie in tables of their own, which are noted with their texts."""
    large = large_arguments(text, settings().value_bytes_max)
    tables = {argument: next(names) for argument in large}
    blobs.update({tables[argument]: written for argument, written in large.items()})
    return arguments_with(text, tables)


async def _sources(database: Database, job_id: int, naming: Sequence[Task]) -> list[str]:
    """The tables that do not live as long as the job needs them."""
    texts = [task.kwargs_json for task in naming]
    foreign = set().union(*map(tables_named, texts))
    if foreign:
        foreign = await database.read(lambda session: of_other_jobs(session, foreign, job_id))
    return sorted(set().union(foreign, *map(temporary_tables_named, texts)))


async def _make(
    database: Database, submission: Submission, copies: Mapping[str, str], blobs: Mapping[str, str]
) -> None:
    """Make copies of tables, and tables of texts; they are known before they are there."""
    from aaiclick.data.blobs import write_blob  # here, to keep start-up light
    from aaiclick.data.clients.opening import close_client, open_client  # here, to keep start-up light
    from aaiclick.data.lifetimes import clone  # here, to keep start-up light

    mode = None if submission.new_job is None else submission.new_job.preservation_mode

    async def work(session: Session) -> str:
        await register_given(session, submission.job_id, [*copies.values(), *blobs], mode)
        return await name_of_installation(session)

    installation = await database.transact(work)
    url = get_ch_url()
    client = await open_client(url)
    try:
        if copies:
            await clone(client, copies, job_id=submission.job_id, installation=installation)
        for table, text in blobs.items():
            await write_blob(client, table, text, job_id=submission.job_id, installation=installation)
    finally:
        await close_client(url)


async def _leave(database: Database, tables: Sequence[str]) -> None:
    """Leave these to whoever drops tables."""
    try:
        await database.transact(lambda session: mark_given(session, tables))
    except Exception as error:  # what led here is told; they are found by their age
        log.warning("copies of Objects are left for later: %s", error)
