"""The steps of a migration: repeated where the database commits each by itself."""

from __future__ import annotations

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Integer, create_engine, inspect

from aaiclick.orchestration.store.migrations.steps import create_index, create_table, flag, must_be_repeatable


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
