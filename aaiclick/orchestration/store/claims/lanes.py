"""The lanes of graphs: those of scheduled runs, and what stored jobs and groups need."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import select

from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.lanes import PLAIN, canonical
from aaiclick.orchestration.rules.naming.executor_names import PYTHON, executor_of
from aaiclick.orchestration.rules.placement import lane_needs, merge
from aaiclick.orchestration.store.lanes import lanes_of, read_needs
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import groups, jobs


async def place_run(session: Session, submission: Submission) -> None:
    """Set the lanes of a scheduled run, which were made when its entry was registered; its tasks are in no groups."""
    job = submission.new_job
    if job is None:
        return
    plain = all(not task.needs and executor_of(task.entrypoint) == PYTHON for task in submission.tasks)
    if plain and not job.needs:
        return
    wanted = [(merge(job.needs, task.needs), task.entrypoint) for task in submission.tasks]
    found = await lanes_of(session, [lane_needs(*each) for each in [(job.needs, ""), *wanted]])
    job.lane = found[0]
    for task, lane in zip(submission.tasks, found[1:], strict=True):
        task.lane = lane


async def read_given(session: Session, job_id: int, group_ids: Sequence[int]) -> tuple[str, dict[int, str], bool]:
    """Return what all tasks of a stored job need, and what those in these groups need, if they need something.

    The last says whether the job is reserved for one worker.
    """
    rows = await session.rows(select(jobs.c.id, jobs.c.lane, jobs.c.reserved_for).where(jobs.c.id == job_id))
    lane_of = {row.id: row.lane for row in rows}
    if group_ids:
        chosen = select(groups.c.id, groups.c.lane).where(
            session.any_of(groups.c.id, group_ids), groups.c.lane != PLAIN
        )
        lane_of |= {row.id: row.lane for row in await session.rows(chosen)}
    known = await read_needs(session, {lane for lane in lane_of.values() if lane != PLAIN})
    said = {node: _of_no_function(known[lane]) for node, lane in lane_of.items() if lane in known}
    return said.pop(job_id, ""), said, any(row.reserved_for for row in rows)


def _of_no_function(text: str) -> str:
    """Return the needs of a job or group, whose lane names no function."""
    return canonical({name: need for name, need in json.loads(text).items() if name != "entrypoint"})
