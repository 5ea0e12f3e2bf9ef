"""An executor with one child, and settings that a test may change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from tests.support.executors import Settings


@pytest.fixture(autouse=True)
def change_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A log directory of the test's own, and a way to change other settings."""

    def change(**settings: object) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(f"AAICLICK_{name}", str(value))
        reset_settings()

    change(LOG_DIR=tmp_path / "logs", CANCEL_GRACE_SECONDS=0.6)
    return change


@pytest.fixture
async def executor(change_settings: Settings) -> AsyncIterator[ProcessExecutor]:
    executor = ProcessExecutor(1)
    await executor.start()
    yield executor
    await executor.close()
