"""A workflow that keeps processors busy with plain Python until it is let go."""

from __future__ import annotations

import os
from pathlib import Path

from aaiclick.orchestration import job, task

LOOK_EVERY = 200_000


@task
def spin(number: int, place: str) -> int:
    """Never waits for anything: only looks, now and then, whether it may end."""
    with open(Path(place) / "notes", "ab", buffering=0) as notes:
        notes.write(f"spin{number} began {os.getpid()}\n".encode())
    turns = 0
    while turns % LOOK_EVERY or not (Path(place) / "go").exists():
        turns += 1
    return number


@job
def spin_all(count: int, place: str) -> list[int]:
    return [spin(number, place) for number in range(count)]
