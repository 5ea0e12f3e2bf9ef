"""The steps of a migration: repeated where the database commits each by itself."""

from __future__ import annotations

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Integer, create_engine, inspect

from aaiclick.orchestration.store import schema
from aaiclick.orchestration.store.connecting import connect
from aaiclick.orchestration.store.migrations.steps import create_index, create_table, flag, must_be_repeatable
from tests.migrations.pictures import ask, run


def test_a_table_with_an_index_and_a_flag_that_is_false_at_first() -> None:
    with create_engine("sqlite://").begin() as connection:
        with Operations.context(MigrationContext.configure(connection)):
            assert not must_be_repeatable()
            create_table("things", Column("id", Integer, primary_key=True), flag("done"))
            create_index("ix_things", "things", "done")
        connection.exec_driver_sql("INSERT INTO things (id) VALUES (1)")
        assert connection.exec_driver_sql("SELECT done FROM things").scalar() in (0, "false")
        assert [index["name"] for index in inspect(connection).get_indexes("things")] == ["ix_things"]


def test_only_mariadb_needs_steps_that_can_be_repeated() -> None:
    for dialect, repeated in (("mysql", True), ("mariadb", True), ("postgresql", False), ("sqlite", False)):
        with Operations.context(MigrationContext.configure(dialect_name=dialect)):
            assert must_be_repeatable() is repeated


async def test_what_was_known_of_tables_outlives_a_registry_that_is_made_anew(sql_url: str) -> None:
    rows = {
        "table_context_refs": "(table_name, context_id, job_id, epoch, preserved, dropping, created_at) VALUES"
        " ('t1_1_1', 1, 2, 1, true, false, '2026-01-01 00:00:00.000000'),"
        " ('t1_1_2', 1, 2, 1, false, true, '2026-01-01 00:00:00.000000')",
        "table_run_refs": "(task_id, epoch, table_name, worker_id, freed) VALUES (1, 1, 't1_1_1', 3, true)",
        "table_pin_refs": "(task_id, table_name, freed) VALUES (4, 't1_1_1', false)",
    }
    await schema.upgrade(sql_url, "0007")
    await run(sql_url, *(f"INSERT INTO {table} {values}" for table, values in rows.items()))
    asked = {
        table: f"SELECT {values[1 : values.index(')')]} FROM {table} ORDER BY table_name"
        for table, values in rows.items()
    }
    async with connect(sql_url, write=False) as connection:
        before = await ask(connection, asked)
    await schema.upgrade(sql_url)
    async with connect(sql_url, write=False) as connection:
        assert await ask(connection, asked) == before
    assert [len(found) for found in before.values()] == [2, 1, 1]


async def test_runs_and_events_of_before_are_shown_under_the_other_names_and_were_not_late(sql_url: str) -> None:
    when = "'2026-01-01 00:00:00.000000'"
    await schema.upgrade(sql_url, "0017")
    await run(
        sql_url,
        f"INSERT INTO runs (task_id, epoch, attempt, worker_id, ended_at, outcome) VALUES (1, 1, 0, 5, {when}, 'lost')",
        "INSERT INTO events (id, job_id, task_id, epoch, move, status, worker_id, at) VALUES"
        f" (1, 9, 1, 1, 'claim', 'claimed', 5, {when}), (2, 9, 1, 1, 'recover', 'pending_cleanup', 5, {when}),"
        f" (3, 9, 1, 3, 'claim', 'claimed', 6, {when}), (4, 9, NULL, NULL, 'start', 'running', NULL, {when})",
    )
    await schema.upgrade(sql_url)
    shown = "SELECT event_id, event_type, node_id FROM task_events WHERE job_id = 9 ORDER BY event_id"
    async with connect(sql_url, write=False) as connection:
        found = await ask(connection, {"view": shown, "runs": "SELECT CASE WHEN late THEN 1 ELSE 0 END FROM runs"})
    assert found == {"view": [(1, "assigned", 5), (2, "lease_expired", 5), (3, "reassigned", 6)], "runs": [(0,)]}


async def test_what_was_reserved_and_ready_stays_so_and_stands_in_the_plain_lane(sql_url: str) -> None:
    when = "'2026-01-01 00:00:00.000000'"
    await schema.upgrade(sql_url, "0018")
    places = [(0, -5, 1, 11), (0, 0, 1, 12), (77, 0, 2, 21)]
    jobs = [
        "INSERT INTO jobs (id, name, status, run_type, preservation_mode, placement, created_at) VALUES"
        f" ({job}, 'j', 'running', 'manual', 'none', {worker}, {when})"
        for job, worker in ((1, 0), (2, 77))
    ]
    tasks = [
        "INSERT INTO tasks (id, job_id, name, entrypoint, kwargs, status, priority, placement, created_at) VALUES"
        f" ({task}, {job}, 't', 'a.b', '{{}}', 'pending', {-rank}, {worker}, {when})"
        for worker, rank, job, task in places
    ]
    ready = [f"INSERT INTO ready VALUES ({', '.join(map(str, place))})" for place in places]
    await run(sql_url, *jobs, *tasks, *ready)
    await schema.upgrade(sql_url)
    asked = {
        "jobs": "SELECT id, reserved_for FROM jobs ORDER BY id",
        "tasks": "SELECT id, reserved_for, lane FROM tasks ORDER BY id",
        "ready": "SELECT * FROM ready ORDER BY task_id",
        "lanes": "SELECT * FROM lanes",
    }
    async with connect(sql_url, write=False) as connection:
        found = await ask(connection, asked)
    assert found == {
        "jobs": [(1, 0), (2, 77)],
        "tasks": [(11, 0, 0), (12, 0, 0), (21, 77, 0)],
        "ready": [(worker, 0, rank, job, task) for worker, rank, job, task in places],
        "lanes": [],
    }
    await run(sql_url, "INSERT INTO ready VALUES (0, 4, 0, 1, 12)")  # the lane is part of the key


async def test_critical_tasks_that_never_ran_count_from_then_on(sql_url: str) -> None:
    when = "'2026-01-01 00:00:00.000000'"
    await schema.upgrade(sql_url, "0009")
    statuses = ("failed", True), ("upstream_failed", True), ("upstream_failed", False), ("completed", True)
    jobs = [
        "INSERT INTO jobs (id, name, status, run_type, preservation_mode, failed_critical, created_at) VALUES"
        f" ({job}, 'j', 'running', 'manual', 'none', 1, {when})"
        for job in (1, 2)
    ]
    tasks = [
        "INSERT INTO tasks (id, job_id, name, entrypoint, kwargs, status, critical, created_at) VALUES"
        f" ({number}, 1, 't', 'a.b', '{{}}', '{status}', {critical}, {when})"
        for number, (status, critical) in enumerate(statuses, 1)
    ]
    await run(sql_url, *jobs, *tasks)
    await schema.upgrade(sql_url)
    async with connect(sql_url, write=False) as connection:
        found = await ask(connection, {"jobs": "SELECT id, failed_critical FROM jobs ORDER BY id"})
    assert [tuple(row) for row in found["jobs"]] == [(1, 2), (2, 1)]


async def test_what_goes_on_in_groups_is_counted_from_the_inside(sql_url: str) -> None:
    when = "'2026-01-01 00:00:00.000000'"
    await schema.upgrade(sql_url, "0014")
    nested = [(1, "NULL", 0), (2, "1", 1), (3, "2", 2), (4, "1", 1), (5, "NULL", 0)]
    inside = [(11, 1, "completed"), (12, 3, "pending"), (13, 3, "running"), (14, 4, "failed"), (15, 5, "cancelled")]
    groups = [
        "INSERT INTO groups (id, job_id, parent_group_id, name, depth, created_at) VALUES"
        f" ({group}, 1, {parent}, 'g', {depth}, {when})"
        for group, parent, depth in nested
    ]
    tasks = [
        "INSERT INTO tasks (id, job_id, group_id, name, entrypoint, kwargs, status, created_at) VALUES"
        f" ({number}, 1, {group}, 't', 'a.b', '{{}}', '{status}', {when})"
        for number, group, status in inside
    ]
    await run(sql_url, *groups, *tasks)
    await schema.upgrade(sql_url)
    async with connect(sql_url, write=False) as connection:
        found = await ask(connection, {"groups": "SELECT id, unended_count FROM groups ORDER BY id"})
    assert [tuple(row) for row in found["groups"]] == [(1, 1), (2, 1), (3, 2), (4, 0), (5, 0)]
