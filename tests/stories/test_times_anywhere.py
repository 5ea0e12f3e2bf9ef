"""Times without a zone are the same wherever a process runs: in it, over the gateway, and after a restart elsewhere."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from aaiclick.data import data_context
from tests.support import warm
from tests.support.front_door import local

__all__ = ["local"]

LONG = "TEST_LONG" in os.environ
ZONES = ["Asia/Kolkata", "America/New_York", *(["UTC", "Pacific/Apia"] if LONG else [])]


def walk(zone: str, folder: Path) -> dict[str, object]:
    """All roads, in a process of this zone."""
    command = [sys.executable, "-m", "tests.support.roads", str(folder)]
    done = warm.run(command, env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


async def test_times_without_a_zone_are_the_same_over_the_gateway(local: Path, tmp_path: Path) -> None:
    async with data_context():  # this process has the engine, in the zone of the machine
        assert walk("Asia/Kolkata", tmp_path) == {"zone": "Asia/Kolkata", "wrong": {}}


def test_times_without_a_zone_are_the_same_in_every_zone_and_after_a_restart(local: Path, tmp_path: Path) -> None:
    for zone in ZONES:
        assert walk(zone, tmp_path) == {"zone": zone, "wrong": {}}
