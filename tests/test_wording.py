"""Numbers of things, and values, as people write them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from aaiclick.orchestration import JobStatus
from aaiclick.wording import counted, written


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02 03:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(hours=25), "1 day, 1:00:00"),
        (Decimal("1.50"), "1.50"),
        (Path("a/b"), "a/b"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (JobStatus.FAILED, "failed"),
        ("text", None),
        ([date(2026, 1, 2)], None),
    ],
)
def test_a_value_is_written_as_people_do(value: object, words: str | None):
    assert written(value) == words


@pytest.mark.parametrize(
    ("number", "words"), [(0, "no entries"), (1, "1 entry"), (2, "2 entries"), (1_000_000, "1000000 entries")]
)
def test_a_number_of_things_has_its_plural(number: int, words: str):
    assert counted(number, "entry", "entries") == words
    assert counted(number, "job") == words.replace("entries", "jobs").replace("entry", "job")
