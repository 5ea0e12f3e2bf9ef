"""The hot moves of MariaDB: a few statements each, whatever the size of the batch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from aaiclick.errors import SessionOver
from aaiclick.orchestration.store.dialects.mariadb_moves import ASK_EVERY
from tests.support.orchestra import Orchestra, make, orchestra

pytestmark = pytest.mark.parametrize("dialect", ["mariadb"], indirect=True)


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
    assert "FOR UPDATE SKIP LOCKED" in looking


async def test_one_of_eight_that_find_nothing_asks_whether_its_session_is_over_and_who_wants_nothing_always(
    stage: Orchestra,
) -> None:
    await stage.coordinator.deregister(stage.worker)
    for call in range(1, ASK_EVERY):
        assert await stage.coordinator.claim(stage.worker, limit=1, call=call) == []
    for limit, call in ((1, ASK_EVERY), (0, 1)):
        with pytest.raises(SessionOver):
            await stage.coordinator.claim(stage.worker, limit=limit, call=call)
