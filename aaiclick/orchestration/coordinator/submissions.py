"""Storing a submitted graph: a new job, idempotent if it has a key, or more tasks for a stored job."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from aaiclick.errors import Conflict
from aaiclick.orchestration.models import Job
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.graphs.graph import Plan
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.graphs.extensions import extend_job
from aaiclick.orchestration.store.graphs.inserts import add_job
from aaiclick.orchestration.store.object_tables.holds import name_of_installation, register_given
from aaiclick.orchestration.store.object_tables.inputs import of_other_jobs
from aaiclick.orchestration.store.reading.jobs import find_stored, get_job, get_job_by_key
from aaiclick.orchestration.store.rejections import is_duplicate
from aaiclick.orchestration.store.retention.table_drops import mark_given
from aaiclick.orchestration.store.session import Session

log = logging.getLogger("aaiclick")


class DirectSubmitter:
    """Implements `Submitter` on a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def submit(self, submission: Submission) -> Job:
        return await submit(self.database, submission)

    async def tables_of_others(self, job_id: int, tables: Collection[str]) -> set[str]:
        return await self.database.read(lambda session: of_other_jobs(session, tables, job_id))

    async def register_tables(self, job_id: int, tables: Sequence[str], mode: str | None) -> str:
        async def work(session: Session) -> str:
            await register_given(session, job_id, tables, mode)
            return await name_of_installation(session)

        return await self.database.transact(work)

    async def leave_tables(self, tables: Sequence[str]) -> None:
        await self.database.transact(lambda session: mark_given(session, tables))


async def submit(database: Database, submission: Submission) -> Job:
    """Store the submission in one transaction. If a job with the same key is stored already, return that job.

    Raises Conflict if that job was submitted with other content.
    """
    submission.refuse_exposed()
    job = submission.new_job
    if job is not None and job.key is not None:
        known = await database.read(lambda session: get_job_by_key(session, job.key or ""))
        if known is not None:
            return _same(known, job)
        try:
            return await _store(database, submission)
        except Exception as error:
            if not is_duplicate(error):
                raise
            known = await database.read(lambda session: get_job_by_key(session, job.key or ""))
            if known is None:
                raise
            return _same(known, job)
    return await _store(database, submission)


async def _store(database: Database, submission: Submission) -> Job:
    async def work(session: Session) -> tuple[Plan, Job | None]:
        plan = await (add_job if submission.new_job is not None else extend_job)(session, submission)
        return plan, await get_job(session, submission.job_id)

    try:
        plan, job = await database.transact(work)
    except Exception as error:
        if not is_duplicate(error):
            raise
        await _refuse_stored(database, submission, error)
        raise
    assert job is not None
    _warn_about_empty_groups(submission, plan)
    submission.hand_over()
    return job


async def _refuse_stored(database: Database, submission: Submission, error: Exception) -> None:
    """Raise Conflict, naming a node that is stored already: the same Task or Group was applied twice at once."""
    nodes = {node.id: node for node in (*submission.tasks, *submission.groups)}
    stored = await database.read(lambda session: find_stored(session, list(nodes)))
    for node_id, job_id in stored.items():
        raise Conflict(
            what=str(nodes[node_id]),
            verb="applied",
            cause=f"it was stored in job {job_id} meanwhile",
            hint="Apply a Task or Group once at a time.",
        ) from error


def _same(known: Job, asked: Job) -> Job:
    if known.key_digest != asked.key_digest:
        raise Conflict(
            what=f"Job {asked.name!r}",
            verb=f"submitted with key {asked.key!r}",
            cause=f"job {known.id} has that key and was asked for something else",
            hint="Use another key.",
        )
    return known


def _warn_about_empty_groups(submission: Submission, plan: Plan) -> None:
    names = {edge.previous.id: edge.previous.name for edge in submission.edges}
    for group in sorted(plan.empty_waited_for):
        log.warning("group %r is empty: whatever waits for it does not have to", names.get(group, group))
