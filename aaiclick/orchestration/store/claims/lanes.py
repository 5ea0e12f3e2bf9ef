"""Lanes: each set of needs that tasks have of their worker gets a number, which never changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select

from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.rules.lanes import PLAIN, canonical
from aaiclick.orchestration.rules.placement import lane_needs, merge
from aaiclick.orchestration.store.definitions.fleet_tables import lanes
from aaiclick.orchestration.store.insert_missing import insert_missing
from aaiclick.orchestration.store.object_tables.references import in_batches
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import groups, jobs


async def intern_lanes(session: Session, needs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the lane of each of these needs; new needs get a new lane, and empty ones the plain lane.

    A transaction that interns the same new needs waits until this one ends. One that holds other locks should therefore
    not call this. The row can be made in an earlier transaction: a lane that no task uses does no harm.
    """
    texts = [canonical(each) if each else "" for each in needs]
    digests = {text: hashlib.sha256(text.encode()).hexdigest() for text in texts if text}
    known = await _read_known(session, digests.values())
    new = [{"digest": digest, "needs": text} for text, digest in digests.items() if digest not in known]
    if new:
        await insert_missing(session, lanes, sorted(new, key=lambda row: row["digest"]))  # in one order: no deadlock
        known = await _read_known(session, digests.values())
    return [known[digests[text]] if text else PLAIN for text in texts]


async def place_run(session: Session, submission: Submission) -> None:
    """Set the lanes of a scheduled run, which were made when its entry was registered; its tasks are in no groups."""
    job = submission.new_job
    if job is None or not job.needs:
        return
    wanted = [(merge(job.needs, task.needs), task.entrypoint) for task in submission.tasks]
    found = await intern_lanes(session, [lane_needs(*each) for each in [(job.needs, ""), *wanted]])
    job.lane = found[0]
    for task, lane in zip(submission.tasks, found[1:], strict=True):
        task.lane = lane


async def read_needs(session: Session, ids: Iterable[int]) -> dict[int, str]:
    """Return the needs of these lanes, as their canonical texts."""
    found: dict[int, str] = {}
    for batch in in_batches(sorted(ids)):
        rows = await session.rows(select(lanes.c.id, lanes.c.needs).where(lanes.c.id.in_(batch)))
        found |= {row.id: row.needs for row in rows}
    return found


async def read_given(session: Session, job_id: int, group_ids: Sequence[int]) -> tuple[str, dict[int, str]]:
    """Return what all tasks of a stored job need, and what those in these groups need, if they need something."""
    lane_of = {
        row.id: row.lane for row in await session.rows(select(jobs.c.id, jobs.c.lane).where(jobs.c.id == job_id))
    }
    if group_ids:
        chosen = select(groups.c.id, groups.c.lane).where(
            session.any_of(groups.c.id, group_ids), groups.c.lane != PLAIN
        )
        lane_of |= {row.id: row.lane for row in await session.rows(chosen)}
    known = await read_needs(session, {lane for lane in lane_of.values() if lane != PLAIN})
    said = {node: _of_no_function(known[lane]) for node, lane in lane_of.items() if lane in known}
    return said.pop(job_id, ""), said


def _of_no_function(text: str) -> str:
    """Return the needs of a job or group, whose lane names no function."""
    return canonical({name: need for name, need in json.loads(text).items() if name != "entrypoint"})


async def _read_known(session: Session, digests: Iterable[str]) -> dict[str, int]:
    known: dict[str, int] = {}
    for batch in in_batches(sorted(digests)):
        rows = await session.rows(select(lanes.c.digest, lanes.c.id).where(lanes.c.digest.in_(batch)))
        known |= {row.digest: row.id for row in rows}
    return known
