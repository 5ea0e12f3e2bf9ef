"""Many rows as JSON."""

from __future__ import annotations

import json
from collections import namedtuple
from datetime import UTC, datetime

from aaiclick.orchestration.rules.states import TaskStatus
from aaiclick.server.rows import to_json, written

Row = namedtuple("Row", "id name status group_id attempt started_at")


def test_ids_are_strings_numbers_stay_and_times_have_their_offset() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    rows = [Row(2**62, "a", TaskStatus.PENDING, None, 1, at), Row(7, "b", "failed", 8, 0, None)]
    told = {"id": str(2**62), "name": "a", "status": "pending", "group_id": None, "attempt": 1}
    first, second = json.loads(to_json({"tasks": written(rows)}))["tasks"]
    assert first == told | {"started_at": "2026-01-02T03:04:05.000006Z"}
    assert second["group_id"] == "8"
    assert second["started_at"] is None


def test_no_rows() -> None:
    assert to_json({"tasks": written([]), "next": None}) == b'{"tasks":[],"next":null}'
