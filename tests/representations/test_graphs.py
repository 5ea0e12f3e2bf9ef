"""Graphs of jobs: many rows of the store."""

from __future__ import annotations

from collections import namedtuple
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.orchestration.store.reading.job_graphs import SHOWN, JobGraph
from aaiclick.representations.fields import time_text
from aaiclick.representations.graphs import GraphTask, graph_answer, graph_task_page

Row = namedtuple("Row", "id name status group_id parent_task_id attempt started_at completed_at when")


def test_ids_are_strings_numbers_stay_and_times_have_their_offset() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    rows = [
        Row(2**62, "a", TaskStatus.PENDING, None, None, 1, at, None, "always"),
        Row(7, "b", "failed", 8, 9, 0, None, at, "always"),
    ]
    first, second = graph_task_page(rows, 10)["tasks"]
    assert (first["id"], first["status"], first["group_id"], first["attempt"]) == (str(2**62), "pending", None, 1)
    assert (first["started_at"], second["started_at"]) == ("2026-01-02T03:04:05.000006Z", None)
    assert (second["group_id"], second["parent_task_id"]) == ("8", "9")


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin"), timezone(timedelta(hours=-3))], ids=str)
@pytest.mark.parametrize("microsecond", [0, 6, 120_000])
def test_times_are_written_as_elsewhere(zone: tzinfo, microsecond: int) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, microsecond, tzinfo=zone)
    (task,) = graph_task_page([Row(1, "a", "failed", None, None, 0, at, None, "always")], 10)["tasks"]
    assert task["started_at"] == time_text(at)


def test_the_columns_that_are_read_are_the_fields() -> None:
    assert [column.key for column in SHOWN] == list(GraphTask.__annotations__) == list(Row._fields)


def test_no_rows() -> None:
    assert graph_task_page([], 10) == {"tasks": [], "next": None}
    assert graph_answer(JobGraph([], [], [])) == {"tasks": [], "groups": [], "dependencies": []}
