"""An engine that outlives all workers of a fleet, and sessions that end soon. Import the fixture where it is used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.data.gateway import serve_directory
from tests.support.fleet import Fleet, fleet

__all__ = ["engine", "fleet"]

SETTINGS = {
    "AAICLICK_SESSION_SECONDS": "3",
    "AAICLICK_LOSSES_MAX": "1000",
    "AAICLICK_CRASHES_MAX": "1000",
    "AAICLICK_SWEEP_AGE": "1",
}


@pytest.fixture
async def engine(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """An engine that outlives all workers."""
    serving = await asyncio.to_thread(serve_directory, tmp_path / "served", port=0)
    assert serving is not None
    where = serving.endpoint
    url = f"clickhouse://{where.user}:{where.password}@{where.tcp.removeprefix('http://')}/default"
    for name, value in {**SETTINGS, "AAICLICK_CH_URL": url}.items():
        fleet.env[name] = value
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", fleet.env["AAICLICK_LOCAL_ROOT"])
    reset_settings()
    yield
    fleet.end()
    await asyncio.to_thread(serving.close)
    reset_settings()
