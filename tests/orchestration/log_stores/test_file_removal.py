"""Files that go, and those that do not."""

from __future__ import annotations

import os
from pathlib import Path

from aaiclick.orchestration.log_stores.file_removal import logs_of, old_logs, remove, remove_logs


def test_the_logs_of_some_runs_go_and_no_others(tmp_path: Path) -> None:
    for name in ("1.log", "1.1.log", "1.2.log", "11.log", "notes.log"):
        (tmp_path / name).write_text("x")
    assert logs_of(tmp_path, [1]) == {"1.log", "1.1.log", "1.2.log"}
    assert remove_logs(tmp_path, [1, 2], [(1, 1), (1, 2), (1, 3)]).files == 3
    assert sorted(os.listdir(tmp_path)) == ["11.log", "notes.log"]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "1.log").symlink_to(tmp_path / "precious")
    assert remove_logs(logs, [1], []).files == 1
    assert (tmp_path / "precious").read_text() == "x"


def test_what_cannot_be_removed_keeps_no_other(tmp_path: Path) -> None:
    (tmp_path / "1.log").mkdir()
    (tmp_path / "2.log").write_text("x")
    gone = remove(tmp_path, ["1.log", "2.log"])
    assert gone.files == 1
    assert gone.trouble is not None


def test_old_are_those_that_nobody_writes_to(tmp_path: Path) -> None:
    for name in ("1.1.log", "2.log", "3.log", "notes.log"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1000, 1000))
    (tmp_path / "4.log").mkdir()
    os.utime(tmp_path / "3.log", (3000, 3000))
    assert list(old_logs(tmp_path, 2000)) == [{"1.1.log": 1, "2.log": 2}]


def test_where_no_directory_is_there_are_no_logs(tmp_path: Path) -> None:
    assert list(old_logs(tmp_path / "none", 2000)) == []
    assert remove_logs(tmp_path / "none", [1], [(1, 1)]).files == 0
