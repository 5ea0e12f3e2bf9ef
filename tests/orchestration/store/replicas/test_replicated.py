"""What replicas have: each table and column is decided on, and secrets are in none of them."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy import insert

from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.replicas.replicated import (
    LEFT_OUT,
    REPLICATED,
    Choice,
    Key,
    columns_of,
    digest_of,
    key_of,
    moment,
    read_page,
)
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import dependencies, fires, metadata

ELSEWHERE = {"cache_entries", "metrics", "job_metrics", "resource_units", "resource_grants"}
"""Asked of the coordinator, or made of its own numbers."""
ACCESS = {"tokens", "audit", "callbacks"}
SCHEDULING = {"ready", "delayed", "claims", "ripples", "lanes", "graph_locks", "gone_jobs"}
PROCESSES = {"terms", "reconcilers", "machine_ids", "installation"}
OBJECTS = {"table_context_refs", "table_run_refs", "table_pin_refs"}


def test_each_table_is_replicated_or_known_not_to_be() -> None:
    known = ELSEWHERE | ACCESS | SCHEDULING | PROCESSES | OBJECTS
    assert known | REPLICATED.keys() == metadata.tables.keys()
    assert not known & REPLICATED.keys()


def test_what_is_left_out_is_there_to_be_left_out() -> None:
    for name, columns in LEFT_OUT.items():
        table = REPLICATED[name]
        assert columns <= set(table.columns.keys())
        assert not columns & set(table.primary_key.columns.keys())
        for column in columns:  # a row without it can be inserted
            assert table.c[column].nullable or table.c[column].server_default is not None, (name, column)
    assert {"result"} <= LEFT_OUT["tasks"] & LEFT_OUT["jobs"]


def test_a_digest_depends_on_each_value_and_on_the_order() -> None:
    rows = [(1, "a", None), (2, "b", 1.5)]
    assert digest_of(rows) == digest_of([list(row) for row in rows])
    assert len({digest_of(each) for each in (rows, rows[::-1], rows[:1], [(1, "a", ""), rows[1]], [])}) == 5


async def in_pages(database: Database, name: str) -> list[tuple[Any, ...]]:
    """All rows of a table, read two at a time."""
    found: list[tuple[Any, ...]] = []
    after: Key | None = None
    while page := await database.read(partial(read_page, choice=Choice(name, after), limit=2)):
        found += page
        after = key_of(REPLICATED[name], page[-1])
    return found


async def test_pages_join_by_keys_of_several_columns(migrated_sql_url: str) -> None:
    edges = [
        {"previous_id": p, "previous_type": t, "next_id": n, "next_type": "task", "job_id": 1}
        for p in (1, 2)
        for t in ("group", "task")
        for n in (3, 4)
    ]
    times = [f"2026-01-0{day} 00:00:00.00000{day}" for day in range(1, 4)]
    database = await Database.open(migrated_sql_url)
    try:

        async def work(session: Session) -> None:
            await session.run(insert(dependencies).values(edges))
            for at in times:
                facts = {"outcome": "run", "created_at": moment(at), "registered_job_id": 1}
                await session.run(insert(fires).values(fire_at=moment(at), **facts))

        await database.transact(work)
        found = await in_pages(database, "dependencies")
        assert len(found) == len(edges) == len(set(found))
        place = [column.name for column in columns_of(fires)].index("fire_at")
        assert [row[place] for row in await in_pages(database, "fires")] == times
    finally:
        await database.close()
