"""The command line, called as its console script calls it, in this process: a process of its own costs its start."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from aaiclick.cli import main
from aaiclick.config import reset_settings


class Answer(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What was printed as JSON, which must be all that was printed."""
        return json.loads(self.out)


class Cli(Protocol):
    def __call__(self, *arguments: str) -> Answer: ...


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A local root of the test's own, not made yet; the environment is read anew."""
    place = tmp_path / "root"
    monkeypatch.setenv("AAICLICK_LOCAL_ROOT", str(place))
    monkeypatch.delenv("AAICLICK_SQL_URL", raising=False)
    reset_settings()
    yield place
    reset_settings()


@pytest.fixture
def on_url(monkeypatch: pytest.MonkeyPatch):
    """Points the commands at a database."""

    def point(url: str) -> None:
        monkeypatch.setenv("AAICLICK_SQL_URL", url)
        reset_settings()

    return point


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["aaiclick", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Answer(code, out, err)

    return call
