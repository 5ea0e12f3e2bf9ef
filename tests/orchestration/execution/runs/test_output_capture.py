"""Streams that know which run is writing."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs import output_capture
from aaiclick.orchestration.execution.runs.current import RUNNING, Running
from tests.support import bodies


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path))
    reset_settings()
    return tmp_path


@pytest.fixture
def captured() -> Iterator[None]:
    output_capture.install()
    yield
    output_capture.remove()


@contextmanager
def a_run(task_id: int) -> Iterator[RunLog]:
    claim = bodies.claim_of(bodies.nothing)
    claim.task_id = task_id
    log = RunLog(task_id, 1)
    token = RUNNING.set(Running(claim, log))
    yield log
    RUNNING.reset(token)
    log.close()


def test_outside_of_runs_everything_goes_where_it_went(capsys: pytest.CaptureFixture[str], logs: Path) -> None:
    before = sys.stdout, sys.stderr
    output_capture.install()
    try:
        print("out")
        print("err", file=sys.stderr)
        sys.stdout.buffer.write(b"bytes\n")
        sys.stdout.flush()
        assert sys.stdout.encoding == before[0].encoding
        assert sys.stdout.errors == before[0].errors
        assert sys.stdout.writable()
    finally:
        output_capture.remove()
    assert (sys.stdout, sys.stderr) == before
    out, err = capsys.readouterr()
    assert sorted(out.split()) == ["bytes", "out"]
    assert err == "err\n"
    assert not list(logs.iterdir())


def test_inside_of_a_run_everything_goes_to_its_log(captured: None, logs: Path) -> None:
    output_capture.ensure()
    with a_run(1):
        print("größe \ud800")
        sys.stderr.buffer.write(memoryview(b"bytes\n"))
        sys.stdout.close()
        print("still open")
        assert not sys.stdout.isatty()
        assert not sys.stdout.buffer.isatty()
        assert (sys.stdout.encoding, sys.stdout.errors) == ("utf-8", "backslashreplace")
    assert (logs / "1.log").read_text() == "größe \\ud800\nbytes\nstill open\n"


def test_the_descriptor_is_the_real_one(captured: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "real").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        output_capture.ensure()
        with a_run(1):
            assert sys.stdout.fileno() == sys.stdout.buffer.fileno() == file.fileno()


def test_a_process_without_streams_can_be_captured(monkeypatch: pytest.MonkeyPatch, logs: Path) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    output_capture.install()
    try:
        print("nowhere")
        sys.stdout.flush()
        with a_run(1):
            print("somewhere")
        assert not sys.stdout.isatty()
        with pytest.raises(io.UnsupportedOperation):
            sys.stdout.fileno()
    finally:
        output_capture.remove()
    assert (logs / "1.log").read_text() == "somewhere\n"


def test_records_go_to_the_runs_log_and_to_the_users_own_handlers(
    captured: None, caplog: pytest.LogCaptureFixture, logs: Path
) -> None:
    with a_run(1):
        logging.getLogger("mine").warning("inside")
    logging.getLogger("mine").warning("outside")
    assert (logs / "1.log").read_text() == "WARNING mine: inside\n"
    assert [record.getMessage() for record in caplog.records] == ["inside", "outside"]


def test_records_that_only_the_last_resort_would_show_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    output_capture.install()
    try:
        logging.getLogger("mine").warning("outside")
        logging.getLogger("mine").info("too quiet")
    finally:
        output_capture.remove()
    assert shown.getvalue() == "outside\n"


def test_it_is_in_place_until_the_last_user_is_gone() -> None:
    output_capture.install()
    output_capture.install()
    output_capture.remove()
    assert isinstance(sys.stdout, output_capture.RunStream)
    output_capture.remove()
    assert not isinstance(sys.stdout, output_capture.RunStream)
