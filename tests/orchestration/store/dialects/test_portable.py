"""The hot moves of SQLite and MariaDB: a few statements each, whatever the size of the batch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select

from aaiclick.orchestration.store.dialects.contract import ReadyKey
from aaiclick.orchestration.store.tables import runs
from tests.support.orchestra import Orchestra, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["sqlite", "mariadb"], indirect=True)


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


@contextmanager
def statements(stage: Orchestra) -> Iterator[list[str]]:
    """What is sent to the database inside the block."""
    sent: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        sent.append(statement)

    engine = stage.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def test_a_claim_is_the_same_few_statements_for_one_and_for_many(stage: Orchestra) -> None:
    job = await stage.submit(*(make(f"t{number}") for number in range(200)))
    stage.database.started_jobs.add(job.id)
    counts = []
    for limit in (1, 100):
        with statements(stage) as sent:
            assert len(await stage.claim(limit)) == limit
        counts.append(len(sent))
    assert counts[0] == counts[1] <= 10


async def test_a_completion_does_not_grow_with_the_graph_around(stage: Orchestra) -> None:
    first, many = make("first"), [make(f"t{number}") for number in range(50)]
    await stage.submit(first, *many, *(node.depends_on(first) for node in (make(f"d{n}") for n in range(50))))
    claims = await stage.claim_named(1)
    with statements(stage) as sent:
        await stage.complete(claims["first"])
    assert len(sent) <= 25


async def test_a_claim_locks_rows_of_the_queue_and_skips_what_others_hold(stage: Orchestra) -> None:
    await stage.submit(make())
    with statements(stage) as sent:
        await stage.claim(1)
    looking = next(statement for statement in sent if "FROM ready" in statement.replace("`", ""))
    skipping = "FOR UPDATE SKIP LOCKED" in looking
    assert skipping == (stage.database.dialect.name == "mariadb")  # SQLite has one writer, and nothing to skip


async def test_ranks_and_jobs_are_left_lane_by_lane(stage: Orchestra) -> None:
    for number in range(3):
        await stage.submit(*(make(f"{number}{rank}", priority=rank) for rank in range(3)))
    assert [claim.name for claim in await stage.claim(9)] == ["02", "12", "22", "01", "11", "21", "00", "10", "20"]
    assert await stage.ready_names() == []
    assert not await stage.violations()


async def test_a_place_to_begin_compares_the_whole_key(stage: Orchestra) -> None:
    one = await stage.submit(make("a", priority=1), make("b"), make("c"))
    two = await stage.submit(make("d"))
    place = ReadyKey(0, one.id, (2**63) - 1)

    async with stage.transaction() as session:
        taken = await session.dialect.claim_ready(session, worker_id=1, placement=0, limit=9, after=place)
        assert [(task.name, task.job_id) for task in taken] == [("d", two.id)]


async def test_the_history_of_a_run_is_taken_from_its_task(stage: Orchestra) -> None:
    await stage.submit(make())
    (claim,) = await stage.claim()
    await stage.complete(claim)
    task = await stage.task(claim)
    (run,) = await stage.rows(select(runs))
    assert (run.claimed_at, run.started_at, run.ended_at) == (task.claimed_at, task.started_at, task.completed_at)
    assert (run.worker_id, run.attempt, run.epoch) == (stage.worker, 0, 1)
