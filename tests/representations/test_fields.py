"""Ids, times and statuses, as JSON has them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import get_type_hints
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from aaiclick.orchestration import JobStatus
from aaiclick.orchestration.rules.validation import LIMIT_DEFAULT
from aaiclick.representations.fields import Form, Id, Time, facts_of, id_text, next_id, time_text


class Thing(TypedDict):
    """A thing."""

    id: Id
    worker_id: Id | None
    count: int
    status: str
    is_done: bool
    at: Time | None


@dataclass
class Stored:
    id: int = 2**62 + 1
    worker_id: int | None = None
    count: int = 3
    status: JobStatus = JobStatus.RUNNING
    is_done: bool = True
    at: datetime | None = None
    secret: str = "not shown"


def test_ids_are_strings_and_numbers_stay_numbers() -> None:
    shown = facts_of(Thing, Stored())
    told = {
        "id": "4611686018427387905",
        "worker_id": None,
        "count": 3,
        "status": "running",
        "is_done": True,
        "at": None,
    }
    assert shown == told
    assert type(shown["status"]) is str


def test_what_is_known_is_not_looked_for() -> None:
    assert facts_of(Thing, Stored(), count=7)["count"] == 7


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T03:04:05+02:00"),
        (datetime(2026, 1, 2, tzinfo=ZoneInfo("Europe/London")), "2026-01-02T00:00:00Z"),
        (datetime(2026, 7, 2, tzinfo=ZoneInfo("Europe/London")), "2026-07-02T00:00:00+01:00"),
    ],
)
def test_times_have_their_offset_and_utc_is_z(moment: datetime, text: str) -> None:
    assert time_text(moment) == text


@given(st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 (hypothesis adds the zone)
def test_a_time_reads_back(moment: datetime) -> None:
    assert datetime.fromisoformat(time_text(moment)) == moment


def test_a_page_that_is_not_full_is_the_last_one() -> None:
    things = [Stored(id=number) for number in range(1, 4)]
    assert (next_id(things, 3), next_id(things, 4), next_id(things, None), next_id([], 1)) == ("3", None, None, None)
    assert next_id([Stored()] * LIMIT_DEFAULT, None) == id_text(Stored().id)


def test_pydantic_reads_the_forms_and_nobody_else_needs_it() -> None:
    properties = TypeAdapter(Thing).json_schema()["properties"]
    assert properties["id"] == {
        "type": "string",
        "pattern": "^[0-9]{1,19}$",
        "examples": ["380467616543174656"],
        "title": "Id",
    }
    assert {"type": "string", "format": "date-time"} in properties["at"]["anyOf"]
    assert isinstance(get_type_hints(Thing, include_extras=True)["id"].__metadata__[0], Form)


def test_what_commands_import_is_light() -> None:
    lines = [
        "import importlib, pkgutil, sys",
        "import aaiclick.representations as room",
        "for each in pkgutil.iter_modules(room.__path__, room.__name__ + '.'): importlib.import_module(each.name)",
        "heavy = {'pydantic', 'fastapi', 'sqlalchemy', 'pyarrow', 'chdb', 'typer'}",
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))",
    ]
    ran = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, capture_output=True, text=True)
    assert ran.stdout == "[]\n"
