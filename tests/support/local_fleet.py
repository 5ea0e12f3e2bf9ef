"""`aaiclick local start` as a process, and what it tells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from aaiclick.config import reset_settings
from tests.support.fleet import ROOT, all_gone, eventually

SETTINGS = {"AAICLICK_SESSION_SECONDS": "5", "AAICLICK_CANCEL_GRACE_SECONDS": "0.6"}


class LocalFleet:
    """A fleet in a process group of its own, as a terminal would start it."""

    def __init__(self, home: Path, *options: str) -> None:
        self._out, self._err = home / "told", home / "said"
        command = [sys.executable, "-m", "aaiclick", "local", "start", "--json", "--app-dir", str(ROOT), *options]
        with open(self._out, "wb") as out, open(self._err, "wb") as err:
            self.process = subprocess.Popen(  # really started: who dies with whom is what is tried
                command, cwd=home, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        self.seen: set[int] = set()

    @property
    def events(self) -> list[dict[str, Any]]:
        whole = self._out.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines()]

    def named(self, event: str, part: str | None = None) -> list[dict[str, Any]]:
        return [told for told in self.events if told["event"] == event and part in (None, told.get("part"))]

    def pid_of(self, part: str) -> int:
        """Its newest process."""
        return int(self.named("started", part)[-1]["pid"])

    async def until(self, event: str, part: str | None = None, count: int = 1) -> None:
        def told() -> bool:
            assert self.process.poll() is None or self.named(event, part), self.explain()
            return len(self.named(event, part)) >= count

        await eventually(told, self.explain)

    async def up(self) -> LocalFleet:
        """With all parts started."""
        await self.until("up")
        return self

    async def ended(self) -> int:
        """Wait for its end, and that of everything below it; gives the exit code."""
        await eventually(lambda: self.process.poll() is not None, self.explain)
        await all_gone(self.seen)
        return self.process.returncode

    def family(self) -> list[int]:
        """All processes below it; they are expected to be gone when it is."""
        found = [each.pid for each in psutil.Process(self.process.pid).children(recursive=True)]
        self.seen.update(found)
        return found

    def explain(self) -> str:
        return self._out.read_text() + self._err.read_text()

    def end(self) -> None:
        if self.process.poll() is None:
            self.family()
            self.process.kill()
        self.process.wait()
        for pid in self.seen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Place:
    """Where a local fleet and its bodies meet the test."""

    def __init__(self, home: Path) -> None:
        self.home, self.place = home, home / "place"
        self.place.mkdir()
        self.fleets: list[LocalFleet] = []

    def start(self, *options: str) -> LocalFleet:
        home = self.home / f"fleet{len(self.fleets)}"
        home.mkdir()
        self.fleets.append(LocalFleet(home, *options))
        return self.fleets[-1]

    async def began(self, count: int) -> list[int]:
        """The processes of so many bodies, as soon as they have begun."""
        file = self.place / "notes"

        def pids() -> list[int]:
            return [int(line.split()[2]) for line in file.read_text().splitlines()] if file.exists() else []

        await eventually(lambda: len(pids()) >= count, lambda: self.fleets[-1].explain())
        return pids()

    def go(self) -> None:
        (self.place / "go").touch()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A local root of the test's own, for this process and for fleets."""
    for name, value in (SETTINGS | {"AAICLICK_LOCAL_ROOT": str(tmp_path / "root"), "PYTHONPATH": str(ROOT)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AAICLICK_SQL_URL", raising=False)
    reset_settings()
    found = Place(tmp_path)
    yield found
    for fleet in found.fleets:
        fleet.end()
    reset_settings()
