"""Runs, events, workers, dependencies, registered jobs: each field is a column, and each column a field."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Table

from aaiclick.orchestration.models import Dependency, Event, RegisteredJob, Run, Worker, WorkerStatus
from aaiclick.orchestration.store import tables

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

RECORDS: list[tuple[Any, Table]] = [
    (Run, tables.runs),
    (Event, tables.events),
    (Dependency, tables.dependencies),
    (Worker, tables.workers),
    (RegisteredJob, tables.registered_jobs),
]


class Row:
    """A row as SQLAlchemy gives it."""

    def __init__(self, **facts: Any) -> None:
        self._mapping = facts


@pytest.mark.parametrize(("record", "table"), RECORDS, ids=lambda item: getattr(item, "name", None))
def test_a_record_and_its_table_have_the_same_fields(record: Any, table: Table) -> None:
    assert {field.name for field in fields(record)} == {column.name for column in table.columns}


@pytest.mark.parametrize(("record", "table"), RECORDS, ids=lambda item: getattr(item, "name", None))
def test_a_record_is_read_from_its_row(record: Any, table: Table) -> None:
    facts: dict[str, Any] = {column.name: f"the {column.name}" for column in table.columns}
    if record is Worker:
        facts["status"] = "active"
    read = record.from_row(Row(**facts))
    assert {name: getattr(read, name) for name in facts} == facts


@pytest.mark.parametrize("record", [Run, Event, Dependency, RegisteredJob])
def test_what_happened_is_not_changed_in_memory(record: Any) -> None:
    read = record.from_row(Row(**{field.name: None for field in fields(record)}))
    with pytest.raises(AttributeError):
        setattr(read, fields(record)[0].name, 1)


def test_a_worker_has_its_status_as_one_of_the_known() -> None:
    facts = {field.name: None for field in fields(Worker)} | {"status": "stopping"}
    assert Worker.from_row(Row(**facts)).status is WorkerStatus.STOPPING
