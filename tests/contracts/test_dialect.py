"""One conformance suite for the dialect seam: the same questions to every database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, func, insert, literal, select, text
from sqlalchemy.exc import ProgrammingError

from aaiclick.orchestration.models import Done, Group
from aaiclick.orchestration.store.dialects import dialect_of
from aaiclick.orchestration.store.dialects.contract import ClaimedTask, ReadyKey, driver_of
from aaiclick.orchestration.store.session import Session
from aaiclick.orchestration.store.tables import claims, events, ready, runs, tasks
from tests.support.orchestra import Orchestra, make, more_workers, orchestra


@pytest.fixture
async def stage(migrated_sql_url: str) -> AsyncIterator[Orchestra]:
    async with orchestra(migrated_sql_url) as opened:
        yield opened


async def take(stage: Orchestra, limit: int, after: ReadyKey | None = None, worker: int = 0) -> list[ClaimedTask]:
    async def work(session: Session) -> list[ClaimedTask]:
        claimed = await session.dialect.claim_ready(
            session, worker_id=worker or stage.worker, reserved_for=0, lane=0, limit=limit, after=after
        )
        return sorted(claimed, key=lambda task: (-task.priority, task.job_id, task.id))

    return await stage.database.transact(work)


# ---------------------------------------------------------------- what it says of itself


def test_a_dialect_is_found_by_its_url(migrated_sql_url: str, dialect: str) -> None:
    assert dialect_of(migrated_sql_url).name == {"postgres": "postgresql"}.get(dialect, dialect)


async def test_it_says_truly_whether_an_update_returns_rows(stage: Orchestra) -> None:
    await stage.submit(make())
    change = text("UPDATE tasks SET error = 'x' RETURNING error")  # as the database itself takes it
    asked = stage.database.transact(lambda session: session.first(change))
    if stage.database.dialect.update_returning:
        assert await asked == ("x",)
    else:
        with pytest.raises(ProgrammingError, match=r"syntax.*RETURNING error"):
            await asked


async def test_it_says_truly_whether_a_claim_starts_the_job(stage: Orchestra) -> None:
    job = await stage.submit(make())
    await take(stage, 1)
    assert ((await stage.job(job)).status == "running") == stage.database.dialect.claims_at_once


async def test_its_driver_is_at_hand(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        assert driver_of(session.connection) is not None


# ---------------------------------------------------------------- expressions


async def test_now_is_an_expression_for_every_place(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        now = session.dialect.now()
        before = await session.now()
        await session.run(insert(events).values(job_id=1, move="m", status="s", at=now))
        written = await session.scalar(select(events.c.at))
        assert before < written < await session.now()
        assert await session.scalar(select(func.count()).select_from(events).where(events.c.at <= now)) == 1
    assert abs(written - datetime.now(UTC)) < timedelta(minutes=1)


async def test_the_seconds_between_two_times(stage: Orchestra) -> None:
    async with stage.transaction() as session:
        now = await session.now()
        for took_s in (0.0, 0.25, 100_000.5):
            times = {"claimed_at": now - timedelta(seconds=took_s), "ended_at": now}
            row = {"task_id": int(took_s * 4) + 1, "epoch": 1, "attempt": 1, "outcome": "completed", **times}
            await session.insert(runs, [row])
        between = session.dialect.seconds(runs.c.claimed_at, runs.c.ended_at)
        found = await session.rows(select(between.label("took_s")).order_by(runs.c.task_id, between))
        assert sorted(row.took_s for row in found) == pytest.approx([0.0, 0.25, 100_000.5], abs=0.001)


@pytest.mark.parametrize("count", [0, 1, 2, 40_000])
async def test_ids_are_asked_for_in_one_statement_however_many(stage: Orchestra, count: int) -> None:
    wanted = [2**62 + number for number in range(count)]
    async with stage.transaction() as session:
        await session.insert(claims, [{"worker_id": 1, "task_id": task, "epoch": 1} for task in (*wanted[:2], 5)])
        expected = min(count, 2)
        now = session.any_of(claims.c.task_id, wanted)
        assert await session.scalar(select(func.count()).select_from(claims).where(now)) == expected
        later = select(func.count().label("found")).select_from(claims)
        later = later.where(session.dialect.in_ids(claims.c.task_id))
        found = await session.first(later, {"ids": session.dialect.pack(wanted)})
        assert found is not None
        assert found.found == expected
        assert await session.run(delete(claims).where(session.any_of(claims.c.task_id, wanted))) == expected


# ---------------------------------------------------------------- transactions


async def test_begin_commit_and_rollback_are_commands(stage: Orchestra) -> None:
    dialect = stage.database.dialect
    async with stage.database.connection() as connection:
        session = Session(connection, dialect)
        for end, left in (("ROLLBACK", 0), ("COMMIT", 1)):
            await dialect.command(connection, dialect.begin)
            await session.insert(claims, [{"worker_id": 1, "task_id": 1, "epoch": 1}])
            await dialect.command(connection, end)
            assert await session.scalar(select(func.count()).select_from(claims)) == left


async def test_outside_a_transaction_each_statement_commits_by_itself(stage: Orchestra) -> None:
    async with stage.database.connection() as connection:
        await Session(connection, stage.database.dialect).insert(claims, [{"worker_id": 1, "task_id": 1, "epoch": 1}])
        assert await stage.scalar(select(func.count()).select_from(claims)) == 1


async def test_a_later_statement_sees_what_was_committed_since_the_transaction_began(stage: Orchestra) -> None:
    """READ COMMITTED, on which «lock, then look» rests; SQLite lets nobody in between."""
    asked = select(func.count()).select_from(claims)
    async with stage.transaction() as session:
        assert await session.scalar(asked) == 0
        if not session.dialect.one_writer:
            one = [{"worker_id": 1, "task_id": 1, "epoch": 1}]
            await stage.database.transact(lambda other: other.insert(claims, one))
            assert await session.scalar(asked) == 1


@pytest.mark.parametrize("error", [ValueError("no"), ValueError(["no"]), KeyError(1), OSError(5, "no"), Exception()])
async def test_other_errors_are_not_taken_for_transient(stage: Orchestra, error: Exception) -> None:
    assert not stage.database.dialect.is_transient(error)


async def test_an_error_of_a_statement_is_not_transient(stage: Orchestra) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        await stage.scalar(select(literal(1)).where(func.no_such_function() == 1))
    assert not stage.database.dialect.is_transient(caught.value)


# ---------------------------------------------------------------- claim


async def test_a_claim_takes_the_first_in_order_and_leaves_the_rest(stage: Orchestra) -> None:
    group = Group("g")
    job = await stage.submit(
        group, *(make(f"t{n}", priority=n % 2, group_id=group.id, timeout_s=1.5) for n in range(4))
    )
    first = await take(stage, 3)
    assert [task.name for task in first] == ["t1", "t3", "t0"]
    assert {(task.epoch, task.job_id, task.group_id) for task in first} == {(1, job.id, group.id)}
    assert {(task.attempt, task.timeout_s, task.needs_inputs) for task in first} == {(0, 1.5, False)}
    assert await stage.ready_names() == ["t2"]
    held = await stage.rows(select(claims.c.task_id, claims.c.epoch, claims.c.worker_id))
    assert {tuple(row) for row in held} == {(task.id, 1, stage.worker) for task in first}
    told = await stage.rows(select(events).where(events.c.move == "claim"))
    assert {(row.task_id, row.epoch, row.status, row.worker_id) for row in told} == {
        (task.id, 1, "claimed", stage.worker) for task in first
    }


async def test_a_claim_after_a_place_takes_only_what_is_behind_it(stage: Orchestra) -> None:
    job = await stage.submit(*(make(f"t{n}", priority=n % 2) for n in range(6)))
    other = await stage.submit(make("other"))
    ids = {row.name: row.id for row in await stage.rows(select(tasks.c.name, tasks.c.id))}
    assert [task.name for task in await take(stage, 2, ReadyKey(-1, job.id, ids["t3"]))] == ["t5", "t0"]
    assert [task.name for task in await take(stage, 9, ReadyKey(0, job.id, ids["t2"]))] == ["t4", "other"]
    assert await take(stage, 9, ReadyKey(0, other.id, ids["other"])) == []
    assert [task.name for task in await take(stage, 9)] == ["t1", "t3", "t2"]


async def test_a_place_in_the_queue_of_a_task_that_is_not_pending_is_cleared_and_gives_nothing(
    stage: Orchestra,
) -> None:
    task = make("t")
    job = await stage.submit(task)
    await take(stage, 1)
    wrong = {"reserved_for": 0, "lane": 0, "rank": 0, "job_id": job.id, "task_id": task.id}
    await stage.database.transact(lambda session: session.insert(ready, [wrong]))
    (other,) = await more_workers(stage, 1)
    assert await take(stage, 1, worker=other) == []
    assert await stage.rows(select(ready)) == []
    assert (await stage.task(task)).worker_id == stage.worker


async def test_ranks_and_jobs_are_left_one_after_the_other(stage: Orchestra) -> None:
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
        taken = await session.dialect.claim_ready(
            session, worker_id=stage.worker, reserved_for=0, lane=0, limit=9, after=place
        )
        assert [(task.name, task.job_id) for task in taken] == [("d", two.id)]


async def test_the_history_of_a_run_is_taken_from_its_task(stage: Orchestra) -> None:
    await stage.submit(make())
    (claim,) = await stage.claim()
    await stage.complete(claim)
    task = await stage.task(claim)
    (run,) = await stage.rows(select(runs))
    assert (run.claimed_at, run.started_at, run.ended_at) == (task.claimed_at, task.started_at, task.completed_at)
    assert (run.worker_id, run.attempt, run.epoch) == (stage.worker, 0, 1)


async def test_an_empty_queue_gives_nothing(stage: Orchestra) -> None:
    assert await take(stage, 10) == []
    assert await take(stage, 10, ReadyKey(0, 1, 1)) == []


# ---------------------------------------------------------------- complete


async def test_completing_moves_what_passes_the_fence_and_nothing_else(stage: Orchestra) -> None:
    first, following, group = make("first"), make("following"), Group("g")
    inside = make("inside", group_id=group.id, critical=False)
    first >> following
    job = await stage.submit(first, following, group, inside, make("late"), make("of another"))
    claimed = {task.name: task for task in await take(stage, 3)}
    (neighbour,) = await more_workers(stage, 1)
    (other,) = await take(stage, 1, worker=neighbour)
    reports = [
        Done(claimed["first"].id, 1, '{"a":1}', "/log"),
        Done(claimed["inside"].id, 1),
        Done(claimed["late"].id, 7),
        Done(other.id, 1),
        Done(12345, 1),
    ]
    ended = await stage.database.transact(
        lambda session: session.dialect.complete_claims(session, stage.worker, reports)
    )
    assert {(task.id, task.job_id, task.group_id, task.dependents_count, task.critical) for task in ended} == {
        (first.id, job.id, None, 1, True),
        (inside.id, job.id, group.id, 0, False),
    }
    assert {task.status for task in ended} == {"completed"}
    done = await stage.task(first)
    assert (done.status, done.result_json, done.log_path) == ("completed", '{"a":1}', "/log")
    assert await stage.scalar(select(func.count()).select_from(claims)) == 2
    history = await stage.rows(select(runs).order_by(runs.c.task_id))
    assert [(row.task_id, row.epoch, row.outcome, row.log_path) for row in history] == [
        (first.id, 1, "completed", "/log"),
        (inside.id, 1, "completed", None),
    ]
    assert {row.ended_at for row in history if row.task_id == first.id} == {done.completed_at}
    told = await stage.rows(select(events.c.task_id).where(events.c.move == "complete"))
    assert {row.task_id for row in told} == {first.id, inside.id}


async def test_completing_nothing_that_is_held_gives_nothing(stage: Orchestra) -> None:
    nothing = [Done(1, 1), Done(2, 1)]
    assert await stage.database.transact(lambda s: s.dialect.complete_claims(s, 1, nothing)) == []


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize("count", [1, 99, 100, 5_000])
async def test_rows_are_inserted_whatever_their_number_and_undone_with_the_rest(stage: Orchestra, count: int) -> None:
    rows = [{"worker_id": 1, "task_id": number, "epoch": 1} for number in range(count)]
    asked = select(func.count()).select_from(claims)

    async def work(session: Session, end: bool) -> int:
        await session.dialect.insert_rows(session, claims, rows)
        if not end:
            raise LookupError
        return int(await session.scalar(asked))

    with pytest.raises(LookupError):
        await stage.database.transact(lambda session: work(session, False))
    assert await stage.scalar(asked) == 0
    assert await stage.database.transact(lambda session: work(session, True)) == count


@pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)
async def test_a_transaction_that_is_left_alone_does_not_keep_its_locks_for_ever(
    dialect: str, stage: Orchestra
) -> None:
    """A worker that is stopped in the middle of one would hold up everyone else."""
    asked = {
        "postgres": "SELECT setting::int / 1000 FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'",
        "mariadb": "SELECT @@SESSION.idle_transaction_timeout",
    }
    assert await stage.scalar(text(asked[dialect])) == 30


async def test_later_is_now_and_some(stage: Orchestra) -> None:
    dialect = stage.database.dialect
    (row,) = await stage.rows(select(dialect.now().label("now"), dialect.later(90.5).label("later")))
    assert abs((row.later - row.now).total_seconds() - 90.5) < 1
