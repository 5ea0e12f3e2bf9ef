"""Logs: where they are, how long they get, and what happens when they cannot be written."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from aaiclick.backoff import Backoffs
from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.logs import run_logs
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.log_stores import log_files
from aaiclick.orchestration.rules.naming.log_names import log_name


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setattr(run_logs, "_backoffs", Backoffs())
    reset_settings()
    return tmp_path / "logs"


@pytest.fixture
def capped(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def cap(size: int) -> None:
        monkeypatch.setenv("AAICLICK_LOG_BYTES_MAX", str(size))
        reset_settings()

    return cap


def written(*chunks: bytes, task_id: int = 5, epoch: int = 1) -> RunLog:
    log = RunLog(task_id, epoch)
    for chunk in chunks:
        log.write(chunk)
    log.close()
    return log


# ---------------------------------------------------------------- the file


def test_a_log_that_nobody_writes_is_no_file(directory: Path) -> None:
    log = written(b"")
    assert log.path is None
    assert not directory.exists()


def test_a_log_may_be_opened_before_anything_is_written(directory: Path) -> None:
    log = RunLog(5, 1)
    log.open()
    assert log.path == str(directory / "5.1.log")
    assert (directory / "5.log").read_bytes() == b""
    log.close()


def test_what_is_written_can_be_read_at_once_under_both_names(directory: Path) -> None:
    log = RunLog(5, 1)
    log.write(b"one\n")
    assert (directory / "5.1.log").read_bytes() == (directory / "5.log").read_bytes() == b"one\n"
    log.write(b"two")
    assert (directory / "5.log").read_bytes() == b"one\ntwo"
    log.close()
    assert stat.S_IMODE((directory / "5.1.log").stat().st_mode) == 0o600
    assert sorted(path.name for path in directory.iterdir()) == ["5.1.log", "5.log"]


def test_the_newest_attempt_outlives_the_removal_of_its_own_file(directory: Path) -> None:
    written(b"first")
    written(b"second", epoch=2)
    assert (directory / "5.1.log").read_bytes() == b"first"
    (directory / "5.2.log").unlink()
    assert (directory / "5.log").read_bytes() == b"second"


def test_where_there_are_no_hard_links_a_symbolic_one_serves(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    written(b"first")
    written(b"second", epoch=2)
    assert (directory / "5.log").readlink() == Path("5.2.log")
    assert (directory / "5.log").read_bytes() == b"second"


def test_names_are_made_of_integers_only() -> None:
    assert log_name(5) == "5.log"
    assert log_name(5, 2) == "5.2.log"
    for wrong in ("../5", "5", 5.0):
        with pytest.raises(ValueError, match="format code"):
            log_name(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["5.1.log", "5.log", ".5.1.log.new"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "hard link", "pipe", "file"])
def test_what_was_planted_is_replaced_and_never_written_through(
    directory: Path, tmp_path: Path, name: str, kind: str
) -> None:
    directory.mkdir()
    target = tmp_path / "precious"
    if kind != "dangling link":
        target.write_text("precious")
    match kind:
        case "link" | "dangling link":
            (directory / name).symlink_to(target)
        case "hard link":
            (directory / name).hardlink_to(target)
        case "pipe":
            os.mkfifo(directory / name)
        case "file":
            (directory / name).write_text("old")
    written(b"mine")
    assert (directory / "5.1.log").read_bytes() == (directory / "5.log").read_bytes() == b"mine"
    assert target.read_text() == "precious" if kind != "dangling link" else not target.exists()


# ---------------------------------------------------------------- its length


def test_of_a_long_output_beginning_and_end_are_kept(directory: Path, capped: Callable[[int], None]) -> None:
    capped(1_000)
    lines = [f"line {number}\n".encode() for number in range(1_000)]
    written(*lines)
    said = (directory / "5.log").read_text()
    assert said.startswith("line 0\nline 1\n")
    assert said.endswith("line 998\nline 999\n")
    assert said.count("[aaiclick]") == 2
    assert len(said) < 1_300
    left_out = int(said.partition(" bytes were left out here")[0].rpartition(" ")[2])
    kept = len(said) - sum(len(line) + 1 for line in said.split("\n") if "[aaiclick]" in line)
    assert abs(sum(map(len, lines)) - left_out - kept) <= 1  # the line break before the first remark


@pytest.mark.parametrize("sizes", [[1_000], [999, 1], [400, 400, 200], [1] * 1_000])
def test_an_output_that_just_fits_is_kept_whole(
    directory: Path, capped: Callable[[int], None], sizes: list[int]
) -> None:
    capped(1_000)
    data = bytes(65 + number % 26 for number in range(1_000))
    chunks, start = [], 0
    for size in sizes:
        chunks.append(data[start : start + size])
        start += size
    written(*chunks)
    assert (directory / "5.log").read_bytes() == data


def test_one_large_chunk_is_capped_too(directory: Path, capped: Callable[[int], None]) -> None:
    capped(1_000)
    written(b"a" * 10**7 + b"z")
    said = (directory / "5.log").read_bytes()
    assert len(said) < 1_300
    assert said.endswith(b"az")


def test_a_remark_of_ours_has_a_line_of_its_own(directory: Path, capped: Callable[[int], None]) -> None:
    log = RunLog(5, 1)
    log.write(b"no newline")
    log.note("killed by signal 9 (SIGKILL)")
    log.note("again")
    log.close()
    assert (
        directory / "5.log"
    ).read_text() == "no newline\n[aaiclick] killed by signal 9 (SIGKILL)\n[aaiclick] again\n"
    capped(1_000)
    log = RunLog(6, 1)
    log.write(b"x" * 10_000)
    log.note("last")
    log.close()
    assert (directory / "6.log").read_text().endswith("x\n[aaiclick] last\n")


def test_what_comes_after_the_end_is_dropped(directory: Path) -> None:
    log = written(b"one")
    log.write(b"two")
    log.note("three")
    log.close()
    assert (directory / "5.log").read_bytes() == b"one"


def test_threads_may_write_together(directory: Path) -> None:
    log = RunLog(5, 1)

    def write() -> None:
        for _ in range(200):
            log.write(b"0123456789\n")

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert (directory / "5.log").read_bytes() == b"0123456789\n" * 1_600


# ---------------------------------------------------------------- trouble


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_directory_that_cannot_be_made_is_warned_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "file"))
    reset_settings()
    for epoch in range(3):
        assert written(b"x", b"y", epoch=epoch).path is None
    (warning,) = warnings_in(caplog)
    assert warning.startswith(f"writing the logs of tasks in {tmp_path / 'file'} fails: ")
    assert warning.endswith("; the tasks go on without logs")


def test_a_directory_that_is_read_only_is_warned_of_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: str, *_: object) -> int:
        raise OSError(30, "Read-only file system", path)

    with monkeypatch.context() as read_only:
        read_only.setattr(run_logs, "_create", refuse)
        for epoch in range(3):
            assert written(b"x", epoch=epoch).path is None
    (warning,) = warnings_in(caplog)
    assert "Read-only file system" in warning
    written(b"x")
    assert "works again" in warnings_in(caplog)[-1]


def test_a_disk_that_is_full_is_warned_of_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_logs, "_create", lambda path: os.open("/dev/full", os.O_WRONLY))
    monkeypatch.setattr(log_files, "point", lambda *_: None)
    for epoch in range(3):
        written(b"x", b"y", epoch=epoch)
    (warning,) = warnings_in(caplog)
    assert "No space left on device" in warning


def test_a_directory_that_is_removed_under_way_is_made_again(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = RunLog(5, 1)
    log.write(b"one")
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    log.write(b"two")
    log.close()
    written(b"three", task_id=6)
    assert (directory / "6.log").read_bytes() == b"three"
    assert not warnings_in(caplog)
