"""The token of a node: kept for its owner alone, shared by the workers of a machine, and renewed in time."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest

from aaiclick.orchestration.coordinator.http.credentials import Credentials
from aaiclick.orchestration.coordinator.http.protocol import GivenToken


def test_what_was_given_is_kept_for_the_next_process(tmp_path: Path) -> None:
    first = Credentials("aai_1_join", tmp_path / "tokens")
    assert (first.text, first.load()) == ("aai_1_join", False)
    digest = first.digest()
    assert digest == first.digest()
    first.take(GivenToken(7, 100.0))
    secret = first.text.removeprefix("aai_7_")
    assert hashlib.sha256(secret.encode()).hexdigest() == digest
    assert first.digest() != digest
    (file,) = (tmp_path / "tokens").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o700
    second = Credentials("aai_1_join", tmp_path / "tokens")
    assert second.load()
    assert second.text == first.text
    second.forget()
    assert second.text == "aai_1_join"
    assert not Credentials("aai_2_join", tmp_path / "tokens").load()


def test_a_token_is_renewed_from_two_thirds_of_its_life_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    found = Credentials("aai_1_x", tmp_path)
    assert found.due_digest() == ""
    found.note_life(90.0, 40.0)
    assert found.due_digest() == ""
    now[0] += 10
    assert found.due_digest() == found.digest()
    found.take(GivenToken(9, 90.0))
    assert found.text.startswith("aai_9_")
    assert found.due_digest() == ""
    found.note_life(None, None)
    now[0] += 10_000
    assert found.due_digest() == ""


def test_an_answer_that_comes_twice_changes_nothing(tmp_path: Path) -> None:
    found = Credentials("aai_1_x", tmp_path)
    found.digest()
    found.take(GivenToken(9, 90.0))
    text = found.text
    found.take(GivenToken(9, 90.0))
    assert found.text == text


def test_a_file_that_cannot_be_read_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = Credentials("aai_1_x", tmp_path)
    found.digest()
    found.take(GivenToken(9, 90.0))
    next(tmp_path.iterdir()).write_text("{")
    again = Credentials("aai_1_x", tmp_path)
    assert not again.load()
    assert "cannot be read" in caplog.text


def test_where_nothing_can_be_written_the_token_is_kept_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    found = Credentials("aai_1_x", tmp_path / "file")
    found.digest()
    found.take(GivenToken(9, 90.0))
    assert found.text.startswith("aai_9_")
    assert "has to join anew" in caplog.text


def test_a_process_that_lives_long_takes_what_another_has_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    worker, child = Credentials("aai_1_join", tmp_path), Credentials("aai_1_join", tmp_path)
    child.refresh()
    assert child.text == "aai_1_join"
    for number in (7, 8):
        now[0] += 100
        worker.digest()
        worker.take(GivenToken(number, 90.0))
        child.refresh()
        assert child.text == worker.text
    now[0] += 100
    monkeypatch.setattr(worker, "_write", lambda: None)
    worker.digest()
    worker.take(GivenToken(9, 90.0))
    newest = worker.text
    worker.refresh()
    assert worker.text == newest, "the file has an older one"
