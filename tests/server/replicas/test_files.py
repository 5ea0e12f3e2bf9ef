"""The file of a replica: made once, used by nobody else, and thrown away by another version."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import insert

from aaiclick.clock import utc_now
from aaiclick.errors import Conflict, SchemaError
from aaiclick.orchestration.rules.settled_events import PATIENCE_S
from aaiclick.orchestration.store import schema
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.reading.event_feed import newest_settled, read_page
from aaiclick.orchestration.store.reading.nodes import list_nodes
from aaiclick.orchestration.store.replicas.applying import ReplicaState, read_state, write_state
from aaiclick.orchestration.store.tables import events
from aaiclick.server.replicas.files import open_replica
from aaiclick.urls import sqlite_url


async def opened(file: Path) -> Database:
    return await open_replica(file, utc_now)


async def test_a_file_is_made_once_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "replica.db"
    database = await opened(file)
    await database.transact(lambda session: write_state(session, ReplicaState("url", cursor=7)))
    assert await database.read(list_nodes) == []  # claims are a view
    await database.close()
    assert file.stat().st_mode & 0o777 == 0o600
    again = await opened(file)
    assert (await again.read(read_state)).cursor == 7
    await again.close()


async def test_nobody_else_works_in_it(tmp_path: Path) -> None:
    await (await opened(tmp_path / "replica.db")).close()
    with pytest.raises(SchemaError, match="that of a replica"):
        await Database.open(sqlite_url(tmp_path / "replica.db"))


async def test_that_of_another_version_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "replica.db"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "HEAD", "0001")
        database = await opened(file)
        await database.transact(lambda session: write_state(session, ReplicaState("url", cursor=7)))
        await database.close()
    again = await opened(file)
    assert (await again.read(read_state)).cursor == 0
    await again.close()


async def test_a_database_of_the_state_is_not_overwritten(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "state.db")
    await (await Database.open(url)).close()
    with pytest.raises(Conflict, match="--replica-file"):
        await opened(tmp_path / "state.db")
    assert await schema.current(url) == schema.HEAD


async def test_a_gap_in_a_copy_is_no_reason_to_wait(tmp_path: Path) -> None:
    """The coordinator has waited: what has arrived is settled, however young it is."""
    assert PATIENCE_S > 0
    database = await opened(tmp_path / "replica.db")
    row = {"job_id": 1, "move": "create", "status": "pending", "at": utc_now()}
    await database.transact(lambda session: session.run(insert(events).values([row | {"id": n} for n in (1, 3)])))
    page = await database.read(lambda session: read_page(session, 0, 9, None))
    assert [event.id for event in page.events] == [1, 3]
    assert await database.read(newest_settled) == 3
    await database.close()
