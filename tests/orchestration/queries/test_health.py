"""`health_check`: what it looks at, and that nothing it meets is raised."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, text, update

from aaiclick.config import reset_settings
from aaiclick.errors import ConfigError
from aaiclick.orchestration.context import orch_context
from aaiclick.orchestration.queries import health
from aaiclick.orchestration.queries.health import Check, DiskPlace, Health, health_check
from aaiclick.orchestration.rules.reconcilers import ReconcilerRecord
from aaiclick.orchestration.store.database import Database
from aaiclick.orchestration.store.reading import health as store
from aaiclick.orchestration.store.reading.health import COUNTED_MAX, LeaderState, Stale, Stuck
from aaiclick.orchestration.store.schema import HEAD
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import terms, workers
from tests.servers.process import free_port
from tests.support.front_door import local as local
from tests.support.front_door import state as state
from tests.support.orchestra import LONG_AGO, Orchestra, make, orchestra

NAMES = ["database", "schema", "workers", "stale_tasks", "leader", "reconcilers", "disk"]


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a server's database, logs would go to the system's directory."""
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))


@pytest.fixture
async def stage(state: str) -> AsyncIterator[Orchestra]:
    async with orchestra(state) as opened:
        yield opened


@pytest.fixture
def on_url(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def point(url: str) -> None:
        monkeypatch.setenv("AAICLICK_SQL_URL", url)
        reset_settings()

    return point


def failed(found: Health) -> list[str]:
    return [check.name for check in found.checks if not check.ok]


async def end_all_sessions(stage: Orchestra) -> None:
    async def work(session: Session) -> None:
        await session.run(update(workers).values(expires_at=LONG_AGO))

    await stage.database.transact(work)


# ---------------------------------------------------------------- all together


async def test_an_empty_database_is_healthy(state: str) -> None:
    found = await health_check()
    assert found
    assert [check.name for check in found.checks] == NAMES
    assert found["schema"].detail == HEAD
    assert found["database"].detail.endswith(" ms")


async def test_a_new_local_root_is_healthy(local: Path) -> None:
    assert await health_check()


async def test_inside_a_context_its_connection_is_used(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with orch_context():
        monkeypatch.setattr(Database, "open", None)
        assert await health_check()


async def test_work_that_nobody_is_there_for(stage: Orchestra) -> None:
    await stage.submit(make())
    assert await health_check()
    await end_all_sessions(stage)
    found = await health_check()
    assert not found
    assert failed(found) == ["workers"]


async def test_work_of_a_worker_that_is_gone(stage: Orchestra) -> None:
    await stage.submit(make())
    await stage.claim()
    await end_all_sessions(stage)
    assert failed(await health_check()) == ["workers", "stale_tasks", "leader"]
    await stage.coordinator.register(hostname="there", pid=2)
    assert failed(await health_check()) == ["stale_tasks", "leader"]


async def test_a_retry_that_nobody_promotes_and_then_somebody_may(stage: Orchestra) -> None:
    await stage.submit(make(max_retries=1))
    await stage.fail(*await stage.claim())
    await stage.let_time_pass()
    assert failed(await health_check()) == ["leader"]

    async def lead(session: Session) -> None:
        soon = await session.now() + timedelta(hours=1)
        await session.run(insert(terms).values(role="control", holder=7, term=3, expires_at=soon))

    await stage.database.transact(lead)
    found = await health_check()
    assert found
    assert found["leader"].detail.startswith("7, term 3, ")


# ---------------------------------------------------------------- what cannot be reached


async def test_a_server_that_is_away(on_url: Callable[[str], None]) -> None:
    on_url(f"postgresql://me:hunter2@127.0.0.1:{free_port()}/away")
    found = await health_check()
    assert not found
    assert [check.name for check in found.checks] == NAMES
    assert failed(found) == NAMES[:-1]
    assert "127.0.0.1" in found["database"].detail
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_a_server_that_does_not_answer(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "ANSWER_S_MAX", 0.0)
    found = await health_check()
    assert found["database"].detail.endswith("does not answer within 0 s")


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_a_database_without_schema(sql_url: str, on_url: Callable[[str], None]) -> None:
    on_url(sql_url)
    found = await health_check()
    assert failed(found) == NAMES[1:-1]
    assert found["schema"].hint == "Run: aaiclick migrate upgrade head"


@pytest.mark.parametrize("dialect", ["postgres"], indirect=True)
async def test_a_connection_that_is_cut_off_meanwhile(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cut(session: Session) -> int:
        await session.rows(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return 0

    monkeypatch.setattr(store, "count_live_workers", cut)
    found = await health_check()
    assert failed(found) == NAMES[:-1]


async def test_a_fault_of_ours_is_raised(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def wrong(_: Session) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(store, "count_live_workers", wrong)
    with pytest.raises(ZeroDivisionError):
        await health_check()


async def test_a_file_that_is_no_database(local: Path) -> None:
    local.mkdir()  # noqa: ASYNC240
    (local / "local.db").write_text("Dear diary, " * 1000)
    found = await health_check()
    assert failed(found) == NAMES[:-1]
    assert "it is not a SQLite database" in found["database"].detail


async def test_a_newer_schema(local: Path) -> None:
    await health_check()
    with sqlite3.connect(local / "local.db") as connection:
        connection.execute("UPDATE aaiclick_schema SET version_num = '9999'")
    connection.close()
    found = await health_check()
    assert failed(found) == NAMES[1:-1]
    assert "9999" in found["schema"].detail


async def test_settings_that_are_wrong_are_told_as_ever(on_url: Callable[[str], None]) -> None:
    on_url("nosuch://x")
    with pytest.raises(ConfigError):
        await health_check()


# ---------------------------------------------------------------- one by one


@pytest.mark.parametrize(
    ("live", "has_work", "ok", "hints"),
    [(2, True, True, False), (2, False, True, False), (0, False, True, True), (0, True, False, True)],
)
def test_workers(live: int, has_work: bool, ok: bool, hints: bool) -> None:
    check = health.judge_workers(live, has_work=has_work)
    assert (check.ok, bool(check.hint)) == (ok, hints)


def test_reconcilers_that_fail_are_told_and_are_no_failure_of_the_whole() -> None:
    then, before = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    fine = ReconcilerRecord("fine", 3, ran_at=then, trouble="was off", trouble_at=before)
    failing = ReconcilerRecord("other", 3, ran_at=then, trouble="OSError: no", trouble_at=then)
    assert health.judge_reconcilers([]) == Check("reconcilers", True, "no reconciler has run yet")
    assert health.judge_reconcilers([fine, ReconcilerRecord("new")]) == Check("reconcilers", True, "2, none fails")
    told = health.judge_reconcilers([fine, failing])
    assert (told.ok, told.detail) == (True, "other fails: OSError: no")
    assert told.hint


def test_stale_tasks() -> None:
    assert health.judge_stale(Stale(0, 0.0)) == Check("stale_tasks", True, "none")
    check = health.judge_stale(Stale(COUNTED_MAX, 61.4))
    assert not check.ok
    assert check.detail == "1000 or more held by workers that are gone, the oldest for 61 s"


@pytest.mark.parametrize(
    ("leader", "waiting", "ok", "said"),
    [
        (LeaderState(7, 3, 4.2), 5, True, "7, term 3, 4 s left"),
        (None, 0, True, "no process leads; nothing is waiting for a leader"),
        (None, 5, False, "no process leads; tasks waiting for a leader: 5"),
        (LeaderState(7, 3, -9.0), 0, True, "no process has led for 9 s; nothing is waiting for a leader"),
        (LeaderState(7, 3, -9.0), 1, False, "no process has led for 9 s; tasks waiting for a leader: 1"),
    ],
)
def test_the_leader(leader: LeaderState | None, waiting: int, ok: bool, said: str) -> None:
    check = health.judge_leader(leader, waiting=waiting)
    assert (check.ok, check.detail) == (ok, said)


@pytest.mark.parametrize(
    ("free_mb", "writable", "ok"), [(5000, True, True), (101, True, True), (99, True, False), (5000, False, False)]
)
def test_the_disk(free_mb: float, writable: bool, ok: bool) -> None:
    fine = DiskPlace("AAICLICK_LOCAL_ROOT", Path("/a"), 5000, True)
    check = health.judge_disk([fine, DiskPlace("AAICLICK_LOG_DIR", Path("/b"), free_mb, writable)])
    assert check.ok is ok
    assert ok or "/b" in check.detail
    assert ok or "AAICLICK_LOG_DIR" in check.hint


def test_a_directory_is_judged_by_where_it_would_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert health._look_at("S", tmp_path / "not" / "yet").writable
    assert not health._look_at("S", tmp_path / "file" / "below").writable


def test_workers_that_cannot_report() -> None:
    check = health.judge_workers(3, has_work=True, stuck=Stuck(1, 7, "there", 95))
    assert not check.ok
    assert check.detail == "3 live; cannot report what they have run: 1 (worker 7 on there, for 95 s)"
    assert check.hint
