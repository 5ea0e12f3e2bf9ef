"""Storing a submitted graph: a new job, idempotent if it has a key, or more tasks for a stored job."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from aaiclick.errors import Conflict, IdempotencyConflict, NotFound
from aaiclick.orchestration.coordinator.placing import place_submission
from aaiclick.orchestration.models import Job, JobStatus
from aaiclick.orchestration.models.job_result import StoredResult
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
from aaiclick.orchestration.store.stored_results import read_named

log = logging.getLogger("aaiclick")


class DirectSubmitter:
    """Implements `FrontDoor` on a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def submit(self, submission: Submission, *, again: bool = False) -> Job:
        if again and (stored := await _find(self.database, submission)) is not None:
            return stored
        return await submit(self.database, submission)

    async def tables_of_others(self, job_id: int, tables: Collection[str]) -> set[str]:
        return await self.database.read(lambda session: of_other_jobs(session, tables, job_id))

    async def register_tables(self, job_id: int, tables: Sequence[str], mode: str | None) -> str:
        async def work(session: Session) -> str:
            await register_given(session, job_id, tables, mode)
            return await name_of_installation(session)

        return await self.database.transact(work)

    async def job(self, job_id: int) -> Job | None:
        return await self.database.read(lambda session: get_job(session, job_id))

    async def result_of(self, job_id: int) -> StoredResult:
        return await self.database.read(lambda session: _read_result(session, job_id))

    async def leave_tables(self, tables: Sequence[str]) -> None:
        await self.database.transact(lambda session: mark_given(session, tables))


async def _read_result(session: Session, job_id: int) -> StoredResult:
    job = await get_job(session, job_id)
    if job is None:
        raise NotFound(what="job", field="id", value=job_id, hint="List them with: aaiclick job list")
    if job.status != JobStatus.COMPLETED:
        cause = f"it is {job.status}" + (f" ({job.error})" if job.error else "")
        raise Conflict(what=f"The result of job {job_id}", verb="read", cause=cause, hint="")
    if job.result_json is None:
        return StoredResult(None)
    found = await read_named(session, [job.result_json])
    return StoredResult(job.result_json, found.texts, found.members, found.outputs)


async def submit(database: Database, submission: Submission) -> Job:
    """Store the submission in one transaction. If a job with the same key is stored already, return that job.

    Raises IdempotencyConflict if that job was submitted with other content.
    """
    submission.refuse_exposed()
    await place_submission(database, submission)
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


async def _find(database: Database, submission: Submission) -> Job | None:
    """Return the job if the whole submission is stored in it: its nodes have ids that the caller made."""
    nodes = [node.id for node in (*submission.tasks, *submission.groups)]

    async def work(session: Session) -> Job | None:
        stored = await find_stored(session, nodes) if nodes else {}
        if any(stored.get(node) != submission.job_id for node in nodes) or not (nodes or submission.new_job):
            return None
        return await get_job(session, submission.job_id)

    return await database.read(work)


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
        await _refuse_known_job(database, submission, error)
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
            cause=f"it was stored in job {job_id} in the meantime",
            hint="Do not apply the same Task or Group concurrently.",
        ) from error


async def _refuse_known_job(database: Database, submission: Submission, error: Exception) -> None:
    """Raise Conflict if a job of this id is stored already: ids are made by those who submit."""
    job = submission.new_job
    if job is not None and await database.read(lambda session: get_job(session, job.id)) is not None:
        cause = "a job of this id is stored already"
        hint = "Make a new one."
        raise Conflict(what=f"Job {job.id}", verb="submitted", cause=cause, hint=hint) from error


def _same(known: Job, asked: Job) -> Job:
    if known.key_digest != asked.key_digest:
        raise IdempotencyConflict(
            what=f"Job {asked.name!r}",
            key=asked.key,
            job_id=known.id,
            cause=f"job {known.id} has that key, and was submitted with other contents",
            hint="Use another key.",
        )
    return known


def _warn_about_empty_groups(submission: Submission, plan: Plan) -> None:
    names = {edge.previous.id: edge.previous.name for edge in submission.edges}
    for group in sorted(plan.empty_waited_for):
        log.warning("group %r is empty: nodes that depend on it do not wait", names.get(group, group))
