"""Questions of replicas: what is none of a replica's tables, keys or times is refused in one line."""

from __future__ import annotations

import pytest

from aaiclick.errors import Conflict, InputError
from aaiclick.orchestration.coordinator.http.replica_protocol import AskChanges, AskPage

WRONG = (
    {"table": "tokens"},
    {"table": "jobs", "after": ["x"]},
    {"table": "jobs", "after": [1, 2]},
    {"table": "fires", "after": [1, "soon"]},
    {"table": "dependencies", "upto": 3},
    {"table": "runs", "job_id": 3},
    {"table": "tasks", "since": "2026-01-01"},
    {"table": "tasks", "job_id": 1, "since": "soon"},
    {"table": "dependencies", "job_id": 1, "since": "2026-01-01"},
)


@pytest.mark.parametrize("asked", WRONG, ids=str)
def test_what_cannot_be_asked_for_is_refused(asked: dict[str, object]) -> None:
    with pytest.raises(InputError):
        AskPage(limit=10, **asked).choice()  # type: ignore[arg-type]


def test_a_replica_of_another_schema_is_refused() -> None:
    with pytest.raises(Conflict, match="same aaiclick on both"):
        AskChanges(after=0, mark="", limit=1, schema="0001").check()
