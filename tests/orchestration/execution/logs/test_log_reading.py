"""Reading a log, also while it is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aaiclick.backend import get_logs_dir
from aaiclick.orchestration.execution.logs.log_reading import read_log
from tests.support.front_door import local

__all__ = ["local"]


@pytest.fixture
def place(local: Path) -> Path:
    return Path(get_logs_dir())


def test_parts_of_a_log(place: Path) -> None:
    (place / "5.log").write_bytes(b"newest")
    (place / "5.2.log").write_bytes(b"0123456789")
    newest = read_log(5)
    assert newest is not None
    assert newest == (b"newest", 6, (place / "5.log").stat().st_ino, True)
    assert (read_log(5, 2, offset=3, limit=2) or ())[:2] == (b"34", 10)
    assert (read_log(5, 2, offset=-2) or ())[:2] == (b"89", 10)
    assert (read_log(5, 2, offset=-99) or ())[:2] == (b"0123456789", 10)
    assert (read_log(5, 2, offset=99) or ())[:2] == (b"", 10)
    assert read_log(5, 1) is None
    assert read_log(6) is None


def test_no_link_is_followed(place: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush")
    os.symlink(tmp_path / "secret", place / "5.log")
    assert read_log(5) is None


def test_a_pipe_in_its_place_stops_nobody(place: Path) -> None:
    os.mkfifo(place / "5.log")
    assert read_log(5) is None
