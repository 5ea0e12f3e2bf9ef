"""From an exception to what is stored of it: cut, masked, and its type kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import InputError
from aaiclick.orchestration import ajob_test, create_job
from aaiclick.orchestration.execution.logs.run_logs import RunLog
from aaiclick.orchestration.execution.runs.failures import (
    MESSAGE_MAX,
    TRACEBACK_MAX,
    describe,
    failure_of,
    storable,
    tell,
)
from aaiclick.orchestration.jobs import list_job_errors
from aaiclick.orchestration.models import Claim
from aaiclick.orchestration.rules.validation import check_name
from tests.orchestration import sample_flows as flows
from tests.orchestration.sample_flows import RAISES, Unspeakable, UnspeakableExit
from tests.support.front_door import local

__all__ = ["local"]

CLAIM = Claim(
    task_id=1,
    epoch=2,
    worker_id=3,
    job_id=4,
    group_id=None,
    name="t",
    entrypoint="a.b",
    kwargs_json="{}",
    attempt=0,
    timeout_s=None,
)
ROOM = 100  # for the line that says how much was left out


def caught(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as raised:
        return raised


@pytest.mark.parametrize("kind", RAISES)
def test_whatever_was_raised_becomes_a_report_that_can_be_stored(kind: str) -> None:
    error = caught(RAISES[kind]())
    failure = failure_of(CLAIM, error)
    assert (failure.task_id, failure.epoch, failure.permanent) == (1, 2, False)
    assert failure.error.startswith(type(error).__qualname__)
    assert failure.error_types[0].endswith(type(error).__qualname__)
    assert failure.error_types[-2:] == ("builtins.BaseException", "builtins.object")
    for text, limit in ((failure.error, MESSAGE_MAX), (failure.traceback or "", TRACEBACK_MAX)):
        assert len(text) <= limit + ROOM
        assert "\0" not in text
        text.encode()
    assert "hunter2" not in failure.error + str(failure.traceback)


def test_the_message_says_the_type_and_the_text() -> None:
    assert describe(ValueError("no")) == "ValueError: no"
    assert describe(KeyError("a")) == "KeyError: 'a'"
    assert describe(ValueError()) == "ValueError"


@pytest.mark.parametrize("error", [Unspeakable(), UnspeakableExit()])
def test_an_error_that_cannot_say_what_it_is_keeps_its_type(error: Exception) -> None:
    assert describe(error).startswith(f"{type(error).__name__}: (its message could not be read: ")


def test_a_group_of_errors_shows_each_in_its_traceback() -> None:
    failure = failure_of(CLAIM, caught(RAISES["ExceptionGroup"]()))
    assert failure.error == "ExceptionGroup: several (2 sub-exceptions)"
    assert "ValueError: one" in str(failure.traceback)
    assert "KeyError: 'two'" in str(failure.traceback)


@pytest.mark.parametrize("body", [flows.raises, flows.raises_on_a_thread])
async def test_a_traceback_begins_with_the_body_not_with_what_called_it(local: object, body: Any) -> None:
    finished = await ajob_test(await create_job("fails", body(kind="MemoryError")))
    (failed,) = await list_job_errors(finished.id)
    header, first, *_ = str(failed.traceback).splitlines()
    assert header == "Traceback (most recent call last):"
    assert first.strip().startswith(f'File "{flows.__file__}"')


def test_a_traceback_of_ours_alone_is_whole() -> None:
    with pytest.raises(InputError) as found:
        check_name(5)
    failure = failure_of(CLAIM, found.value.with_traceback(found.tb.tb_next))
    assert "in check_name" in str(failure.traceback)


def test_the_cause_is_in_the_traceback() -> None:
    try:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error
    except ValueError as raised:
        failure = failure_of(CLAIM, raised)
    assert "KeyError: 'first'" in str(failure.traceback)


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = storable("a" * 600 + "b" * 600, 100)
    assert text.startswith("a" * 50 + "\n… 1100 characters left out …\n")
    assert text.endswith("b" * 50)
    assert storable("a" * 100, 100) == "a" * 100


def test_a_secret_on_the_line_of_the_cut_is_masked_as_a_whole() -> None:
    for before in range(35, 65):
        text = storable("x" * before + " password=" + "hunter" * 20 + " " + "y" * before, 100)
        assert "hunter" not in text
    assert "hunter" not in storable("postgresql://me:" + "hunter" * 200 + "@host", 100)


def test_characters_that_databases_refuse_are_written_as_escapes() -> None:
    assert storable("a\0b\ud800", 100) == "a\\x00b\\ud800"


@pytest.mark.parametrize(
    ("facts", "last"),
    [
        ({"traceback": "Traceback: here"}, "Traceback: here\n"),
        ({"traceback": None}, "[aaiclick] ValueError: no\n"),
        ({"traceback": None, "crashed": True}, "[aaiclick] no\n"),
    ],
)
def test_a_log_ends_with_why_its_run_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: Any, last: str
) -> None:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path))
    reset_settings()
    log = RunLog(1, 2)
    log.write(b"half a line")
    tell(log, replace(failure_of(CLAIM, ValueError("no")), **facts))
    log.close()
    assert log.path is not None
    assert Path(log.path).read_text() == f"half a line\n{last}"
    reset_settings()
