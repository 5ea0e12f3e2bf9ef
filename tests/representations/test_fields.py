"""How things are shown."""

from __future__ import annotations

from dataclasses import dataclass

from aaiclick.orchestration import JobStatus
from aaiclick.server.models.shown import Id, Shown


class Thing(Shown):
    id: Id
    worker_id: Id | None
    count: int
    status: str
    is_done: bool


@dataclass
class Stored:
    id: int = 2**62 + 1
    worker_id: int | None = None
    count: int = 3
    status: JobStatus = JobStatus.RUNNING
    is_done: bool = True
    secret: str = "not shown"


def test_ids_are_strings_and_numbers_stay_numbers() -> None:
    assert Thing.of(Stored()).model_dump() == {
        "id": "4611686018427387905",
        "worker_id": None,
        "count": 3,
        "status": "running",
        "is_done": True,
    }
    assert type(Thing.of(Stored()).status) is str
