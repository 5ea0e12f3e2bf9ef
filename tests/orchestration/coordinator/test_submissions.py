"""Taking in a graph: keys that make it idempotent, transactions that are tried again, honest marks in memory."""

import asyncio
import logging
from typing import Any

import pytest
from sqlalchemy import func, select

from aaiclick.errors import CircularDependencyError, Conflict, TransientStoreError
from aaiclick.orchestration.coordinator.submissions import submit
from aaiclick.orchestration.factories import new_job
from aaiclick.orchestration.gathering import gather
from aaiclick.orchestration.models import Group, Job
from aaiclick.orchestration.models.node import Node
from aaiclick.orchestration.models.submission import Submission
from aaiclick.orchestration.store.database import TRIES, Database
from aaiclick.orchestration.store.tables import jobs, tasks
from tests.support.band import SERVERS, band
from tests.support.contents import contents, refused
from tests.support.orchestra import Orchestra, extension, make

__all__ = ["band"]


def asked(*nodes: Node, key: str | None = None, body: str = "body", name: str = "job") -> Submission:
    """A new job with this key, and a digest that stands for what it was asked."""
    job = new_job(name, key=key)
    job.key_digest = None if key is None else body
    submission = gather(job.id, nodes)
    submission.new_job = job
    return submission


async def count_jobs(band: Orchestra) -> int:
    return int(await band.scalar(select(func.count()).select_from(jobs)))


# ---------------------------------------------------------------- keys


async def test_the_same_key_and_body_is_the_first_job_again(band: Orchestra) -> None:
    first = await submit(band.database, asked(make(), key="2026-11-15"))
    nodes = [make(), make()]
    before = await contents(band.database)
    again = await submit(band.database, asked(*nodes, key="2026-11-15"))
    assert again.id == first.id
    assert await contents(band.database) == before
    assert not any(node.applied or node.job_id for node in nodes), "they were not stored"


async def test_the_same_key_with_another_body_is_a_conflict(band: Orchestra) -> None:
    first = await submit(band.database, asked(make(), key="k"))
    async with refused(band.database, Conflict, match=f"job {first.id} has that key"):
        await submit(band.database, asked(make(), key="k", body="another"))


async def test_a_key_stays_taken_when_its_job_has_ended(band: Orchestra) -> None:
    first = await submit(band.database, asked(make(), key="k"))
    await band.drain()
    assert (await submit(band.database, asked(make(), key="k"))).id == first.id


async def test_jobs_without_a_key_are_as_many_as_are_asked_for(band: Orchestra) -> None:
    for _ in range(3):
        await submit(band.database, asked(make()))
    assert await count_jobs(band) == 3


@pytest.mark.parametrize("other", ["KEY", "kéy", "ke\u0301y", "k ey", "kěy", "\uff4bey", "keyy", "kEy"])
async def test_keys_are_compared_to_the_letter(band: Orchestra, other: str) -> None:
    first = await submit(band.database, asked(make(), key="key"))
    second = await submit(band.database, asked(make(), key=other))
    assert first.id != second.id
    assert second.key == other


@pytest.mark.parametrize("body", ["body", "another"])
async def test_two_with_one_key_at_once_are_one_job(band: Orchestra, body: str) -> None:
    """Both have looked and found nothing when both begin to write."""
    submissions = [asked(make("one"), key="k"), asked(make("other"), key="k", body=body)]
    both = asyncio.Barrier(2)
    answers = await asyncio.gather(
        *(submit(Held(band.database, both), one) for one in submissions),  # type: ignore[arg-type]
        return_exceptions=True,
    )
    stored = [answer for answer in answers if isinstance(answer, Job)]
    assert await count_jobs(band) == 1
    assert await band.scalar(select(func.count()).select_from(tasks)) == 1
    if body == "body":
        assert len({job.id for job in stored}) == 1
        assert len(stored) == 2
    else:
        assert len(stored) == 1
        assert sum(isinstance(answer, Conflict) for answer in answers) == 1
    assert await band.violations() == []


class Held:
    """A database whose first read, the look for the key, waits for the other's."""

    def __init__(self, database: Database, barrier: asyncio.Barrier) -> None:
        self.database = database
        self.barrier = barrier
        self.reads = 0

    async def read(self, work: Any) -> Any:
        found = await self.database.read(work)
        self.reads += 1
        if self.reads == 1:
            await self.barrier.wait()
        return found

    async def transact(self, work: Any) -> Any:
        return await self.database.transact(work)


@SERVERS
async def test_sixteen_with_one_key_at_once_are_one_job(band: Orchestra) -> None:
    submissions = [asked(make(), make(), key="k") for _ in range(16)]
    stored = await asyncio.gather(*(submit(band.database, one) for one in submissions))
    assert len({job.id for job in stored}) == 1
    assert await count_jobs(band) == 1
    assert sum(task.applied for one in submissions for task in one.tasks) == 2


# ---------------------------------------------------------------- tried again


class Hiccup(Exception):
    """What a database says that it may pass the next time."""


def stumble(database: Database, monkeypatch: pytest.MonkeyPatch, times: int) -> list[str]:
    """Let so many commits fail as if by a deadlock; gives what was commanded."""
    commanded: list[str] = []
    command, is_transient = database.dialect.command, database.dialect.is_transient

    async def stumbling(connection: Any, sql: str) -> None:
        commanded.append(sql)
        if sql == "COMMIT" and commanded.count("COMMIT") <= times:
            raise Hiccup
        await command(connection, sql)

    monkeypatch.setattr(database.dialect, "command", stumbling)
    monkeypatch.setattr(
        database.dialect, "is_transient", lambda error: isinstance(error, Hiccup) or is_transient(error)
    )
    return commanded


async def test_a_new_job_whose_commit_stumbles_is_stored_once(band: Orchestra, monkeypatch: pytest.MonkeyPatch) -> None:
    first, group = make("first"), Group("g")
    first >> make("inside", group_id=group.id)
    commanded = stumble(band.database, monkeypatch, times=2)
    job = await band.submit(first, group)
    assert commanded.count("COMMIT") == 3
    assert job.total_tasks == 2
    assert await band.violations() == []


async def test_an_extension_whose_commit_stumbles_is_stored_once_and_whole(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trying again begins with what was submitted, not with what the first try left of it."""
    first, second = make("first"), make("second")
    first >> second
    job = await band.submit(second)
    first >> second  # known already
    late = make("late")
    [first, second] >> late
    submission = extension(job, late, second)
    edges = list(submission.edges)
    assert len(edges) == 3
    stumble(band.database, monkeypatch, times=3)
    await band.coordinator.submit(submission)
    assert submission.edges == edges
    assert all(edge.applied for edge in edges)
    assert await band.violations() == []
    assert [claim.name for claim in await band.drain()] == ["first", "second", "late"]


async def test_one_that_never_passes_is_given_up_and_nothing_is_marked(
    band: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await band.submit(make("first"))
    late = make("late")
    with monkeypatch.context() as patch:
        patch.setattr("random.uniform", lambda least, most: 0.0)
        commanded = stumble(band.database, patch, times=TRIES)
        async with refused(band.database, TransientStoreError, match=str(TRIES)):
            await band.apply(job, late)
    assert commanded.count("COMMIT") == TRIES
    assert not late.applied
    await band.apply(job, late)
    assert late.applied
    assert await band.violations() == []


# ---------------------------------------------------------------- marks in memory


async def test_what_is_stored_is_marked_and_what_is_refused_is_not(band: Orchestra) -> None:
    first, second, third = make("first"), make("second"), make("third")
    first >> second
    third >> first
    second >> third
    submission = asked(first, second, third)
    async with refused(band.database, CircularDependencyError):
        await submit(band.database, submission)
    nodes: list[Node] = [first, second, third]
    assert not any(node.applied or node.job_id for node in nodes)
    assert not any(edge.applied for edge in submission.edges)
    submission.edges = [edge for edge in submission.edges if edge.next is not first]
    job = await submit(band.database, submission)
    assert all(node.applied and node.job_id == job.id for node in nodes)
    assert [edge.applied for edge in first.outgoing] == [True]
    assert [edge.applied for edge in third.outgoing] == [False], "this one was left out"


async def test_a_submission_without_a_key_that_meets_itself_is_a_conflict(band: Orchestra) -> None:
    submission = asked(make("one"), Group("g"))
    await submit(band.database, submission)
    async with refused(band.database, Conflict, match="one|job"):
        await submit(band.database, submission)


async def test_the_warning_names_each_empty_group_once(band: Orchestra, caplog: pytest.LogCaptureFixture) -> None:
    hollow, full = Group("hollow"), Group("full")
    make("inside", group_id=full.id)
    [hollow, full] >> make("one")
    hollow >> make("other")
    with caplog.at_level(logging.WARNING, "aaiclick"):
        await band.submit(hollow, full, *[edge.next for edge in hollow.outgoing])
    assert [record.getMessage() for record in caplog.records] == [
        "group 'hollow' is empty: nodes that depend on it do not wait"
    ]
