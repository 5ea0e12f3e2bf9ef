"""Fixtures of the front door's tests: which state the calls of a test meet. Import them where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from aaiclick.config import reset_settings

__all__ = ["local", "state"]


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A local root of the test's own, with nothing in it."""
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(tmp_path / "root"))
    monkeypatch.delenv("AAICLICK_SQL_URL", raising=False)
    reset_settings()
    yield tmp_path / "root"
    reset_settings()


@pytest.fixture
def state(migrated_sql_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A migrated database of the test's own; the test runs once on each of the three."""
    monkeypatch.setenv("AAICLICK_SQL_URL", migrated_sql_url)
    reset_settings()
    yield migrated_sql_url
    reset_settings()
