"""What is asked, answered and listed of remembered results is plain data."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec

from aaiclick.orchestration.models.cached import CacheAnswer, CacheEntry, CacheKey
from aaiclick.orchestration.store.definitions.cache_tables import cache_entries


def test_a_key_and_an_answer_travel() -> None:
    for there in (CacheKey("d", "a.b", "i", "größe", 1.5, True, True), CacheAnswer(True, "5", True, True, 7)):
        assert msgspec.json.decode(msgspec.json.encode(there), type=type(there)) == there


def test_an_entry_shows_its_row_but_neither_the_key_nor_the_result() -> None:
    columns = {column.name for column in cache_entries.columns}
    assert columns - {field.name for field in fields(CacheEntry)} == {"digest", "inputs", "result"}
    now = datetime(2026, 11, 15, tzinfo=UTC)
    row = SimpleNamespace(**{field.name: 1 for field in fields(CacheEntry)} | {"created_at": now, "expires_at": None})
    assert (CacheEntry.from_row(row).created_at, CacheEntry.from_row(row).size) == (now, 1)
