"""Runs, events, workers, dependencies, registered jobs: each field is a column, and each column a field."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Table

from aaiclick.orchestration.models import Backfill, Dependency, Event, Fire, RegisteredJob, Run, Worker, WorkerStatus
from aaiclick.orchestration.rules.schedules.fires import MissedRuns, Overlap
from aaiclick.orchestration.store import tables

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)

RECORDS: list[tuple[Any, Table]] = [
    (Run, tables.runs),
    (Event, tables.events),
    (Dependency, tables.dependencies),
    (Worker, tables.workers),
    (RegisteredJob, tables.registered_jobs),
    (Fire, tables.fires),
    (Backfill, tables.backfills),
]

STORED: dict[Any, dict[str, str]] = {
    Worker: {"status": "active"},
    RegisteredJob: {
        "default_kwargs": "{}",
        "missed_runs": "all",
        "overlap": "queue",
        "placement": '{"gpu": 1}',
        "resources": '{"gpu": 1}',
    },
    Fire: {"outcome": "queued"},
    Backfill: {"kwargs": "{}", "status": "running"},
}
"""Columns that are read as something else than they are stored."""


KEPT_BACK: dict[Any, set[str]] = {Run: {"late", "report_digest"}}
"""Columns by which the store knows again what it was told."""


def shown_columns(record: Any, table: Table) -> set[str]:
    return {column.name for column in table.columns} - KEPT_BACK.get(record, set())


def stored_fields(record: Any) -> list[Any]:
    """Those that are columns: how many runs a backfill has is counted."""
    return [field for field in fields(record) if (record, field.name) != (Backfill, "runs")]


class Row:
    """A row as SQLAlchemy gives it."""

    def __init__(self, **facts: Any) -> None:
        self._mapping = facts


@pytest.mark.parametrize(("record", "table"), RECORDS, ids=lambda item: getattr(item, "name", None))
def test_a_record_and_its_table_have_the_same_fields(record: Any, table: Table) -> None:
    assert {field.name for field in stored_fields(record)} == shown_columns(record, table)


@pytest.mark.parametrize(("record", "table"), RECORDS, ids=lambda item: getattr(item, "name", None))
def test_a_record_is_read_from_its_row(record: Any, table: Table) -> None:
    facts: dict[str, Any] = {name: f"the {name}" for name in shown_columns(record, table)}
    own = STORED.get(record, {})
    read = record.from_row(Row(**facts | own))
    assert {name: getattr(read, name) for name in facts.keys() - own.keys()} == {
        name: facts[name] for name in facts.keys() - own.keys()
    }


@pytest.mark.parametrize("record", [Run, Event, Dependency, RegisteredJob, Fire, Backfill])
def test_what_happened_is_not_changed_in_memory(record: Any) -> None:
    read = record.from_row(Row(**{field.name: None for field in stored_fields(record)} | STORED.get(record, {})))
    with pytest.raises(AttributeError):
        setattr(read, fields(record)[0].name, 1)


def test_a_worker_has_its_status_as_one_of_the_known() -> None:
    facts = {field.name: None for field in fields(Worker)} | {"status": "stopping"}
    assert Worker.from_row(Row(**facts)).status is WorkerStatus.STOPPING


def test_a_catalogue_entry_has_its_defaults_and_policies_as_values() -> None:
    facts = {field.name: None for field in fields(RegisteredJob)}
    stored = {"default_kwargs": '{"x":{"object_type":"pyobj","value":3}}', "missed_runs": "none", "overlap": "skip"}
    read = RegisteredJob.from_row(Row(**facts | stored))
    assert (read.default_kwargs, read.missed_runs, read.overlap) == ({"x": 3}, MissedRuns.NONE, Overlap.SKIP)
