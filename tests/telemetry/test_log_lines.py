"""Log lines: text for people, JSON for programs; the fields in both, secrets in neither."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from aaiclick.config import reset_settings
from aaiclick.errors import ConfigError
from aaiclick.telemetry import masks
from aaiclick.telemetry.fields import about, bound
from aaiclick.telemetry.log_lines import JsonLines, TextLines, line_format

TEXT = "%(levelname)s %(message)s"


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    masks.forget_all()
    yield
    masks.forget_all()


def record(message: str, *args: object, error: Any = None, **extra: Any) -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("aaiclick", logging.WARNING, __file__, 1, message, args, exc_info)
    made.__dict__.update(extra)
    return made


def test_text_is_followed_by_the_fields_that_it_does_not_say() -> None:
    lines = TextLines(TEXT)
    assert lines.format(record("nothing is bound")) == "WARNING nothing is bound"
    with bound(worker=4711, task=12):
        assert lines.format(record("worker %s: asked to drain", 4711)) == "WARNING worker 4711: asked to drain task=12"
    assert lines.format(record("late", **about(job=9, epoch=None))) == "WARNING late job=9"


def test_a_number_that_stands_in_the_line_by_chance_is_not_taken_for_the_field() -> None:
    lines = TextLines("2026-11-19 01:02:03 %(message)s")
    assert lines.format(record("1 task of 471199", **about(epoch=1, worker=4711))).endswith(" epoch=1 worker=4711")


def test_the_traceback_follows_the_fields() -> None:
    with bound(task=12):
        first, *_, last = TextLines(TEXT).format(record("failed", error=ValueError("no"))).splitlines()
    assert (first, last) == ("WARNING failed task=12", "ValueError: no")


def test_json_is_an_object_a_line_with_ids_as_text() -> None:
    with bound(job=2**60, task=1):
        said = JsonLines().format(record("two\nlines of %s", "«x»", **about(task=2)))
    assert "\n" not in said
    line = json.loads(said)
    assert datetime.fromisoformat(line.pop("time")).utcoffset() is not None
    assert line == {
        "level": "WARNING",
        "logger": "aaiclick",
        "message": "two\nlines of «x»",
        "job": str(2**60),
        "task": "2",
    }


def test_json_has_the_error_and_the_stack() -> None:
    made = record("failed", error=ValueError("no"), stack_info="Stack (most recent call last):\n  here")
    line = json.loads(JsonLines().format(made))
    assert line["error"].splitlines()[-2:] == ["Stack (most recent call last):", "  here"]
    assert "ValueError: no" in line["error"]


def test_lone_surrogates_do_not_break_a_line() -> None:
    assert "\\udc80" in JsonLines().format(record("file \udc80"))


@pytest.mark.parametrize("lines", [TextLines(TEXT), JsonLines()])
def test_secrets_are_masked_in_all_of_it(lines: logging.Formatter) -> None:
    masks.remember(['quo"ted-canary'])
    with bound(worker='quo"ted-canary'):
        said = lines.format(record("has %s", 'quo"ted-canary', error=ValueError('quo"ted-canary')))
    assert "canary" not in said
    assert said.count("***") == 3


@pytest.mark.parametrize(("set_to", "kind"), [("JSON", JsonLines), ("text", TextLines), (None, TextLines)])
def test_the_setting_chooses(monkeypatch: pytest.MonkeyPatch, set_to: str | None, kind: type) -> None:
    if set_to is not None:
        monkeypatch.setenv("AAICLICK_LOG_FORMAT", set_to)
    reset_settings()
    assert type(line_format(TEXT)) is kind


@pytest.mark.parametrize(("name", "value"), [("AAICLICK_LOG_FORMAT", "xml"), ("AAICLICK_LOG_LEVEL", "LOUD")])
def test_other_values_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    reset_settings()
    with pytest.raises(ConfigError, match=name):
        line_format(TEXT)


def said_by(code: str, **env: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": "", **env}, capture_output=True, text=True, check=True, cwd="."
    )
    return ran.stderr.splitlines()


def test_a_process_of_ours_writes_from_the_level_that_is_set() -> None:
    code = """
import logging
from aaiclick.telemetry.log_lines import log_to_stderr
log_to_stderr()
log = logging.getLogger("aaiclick")
log.debug("one"), log.info("two"), log.warning("three"), logging.getLogger("theirs").info("four")
log.warning("at postgresql://u:canary-in-url@h/x")
"""
    env = {"AAICLICK_LOG_FORMAT": "json", "AAICLICK_LOG_LEVEL": "info", "AAICLICK_LOCAL_ROOT": "/nowhere"}
    env["AAICLICK_SQL_URL"] = "postgresql+asyncpg://u:canary-in-url@h/x"
    lines = [json.loads(line)["message"] for line in said_by(code, **env)]
    assert lines == ["two", "three", "at postgresql://u:***@h/x"]


def test_as_a_library_nothing_is_configured() -> None:
    code = """
import logging, sys
import aaiclick.orchestration, aaiclick.orchestration.launchers.worker_main, aaiclick.data.front
from aaiclick.orchestration import job_test, create_job
assert logging.getLogger().handlers == [], logging.getLogger().handlers
assert logging.getLogger().level == logging.WARNING
assert logging.getLogger("aaiclick").handlers == []
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    assert said_by(code, AAICLICK_LOCAL_ROOT="/nowhere") == []
