"""Real workers: `python -m aaiclick worker start` and its like, each a process of its own, all gone at the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from sqlalchemy import Row, select

from aaiclick.orchestration.bus import open_bus
from aaiclick.orchestration.coordinator.direct import DirectCoordinator
from aaiclick.orchestration.coordinator.machine_ids import provide_ids
from aaiclick.orchestration.models import Job, Task
from aaiclick.orchestration.rules.states import ENDED_JOB
from aaiclick.orchestration.store import tables
from aaiclick.orchestration.store.database import Database
from tests.support import warm
from tests.support.orchestra import Orchestra

__all__ = ["Fleet", "LONG", "Member", "Note", "fleet", "servers_only", "eventually"]

LONG = "TEST_LONG" in os.environ
WAIT_S_MAX = 60.0  # a process that is stopped in a transaction may hold its locks for 30 s
ROOT = Path(__file__).parents[2]
APP = Path(__file__).parent / "app"

servers_only = pytest.mark.parametrize("dialect", ["postgres", "mariadb"], indirect=True)


class Note(NamedTuple):
    """What a body wrote."""

    name: str
    what: str
    pid: int


class Member:
    """One process of a fleet."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.pid, self._log = process, process.pid, log

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """As the machine's memory killer does; reaped, so that nobody takes the corpse for a process."""
        self.process.kill()
        self.process.wait()

    def family(self) -> list[psutil.Process]:
        """All processes below this one."""
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(self.pid).children(recursive=True)
            return [each for each in found if each.name() != warm.CALLED]
        return []

    async def ended(self) -> int:
        """Wait for its end; gives the exit code."""
        await eventually(lambda: not self.alive)
        return self.process.wait()

    def said(self) -> str:
        """What it wrote, without the lines in which it introduces itself."""
        lines = self._log.read_text(errors="replace").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(INTRODUCTIONS))


INTRODUCTIONS = ("Worker on ", "Control loop on ", "State in ", "Modules from ")


@dataclass
class Fleet(Orchestra):
    """Workers on one database, and the place where their bodies meet the test."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)

    @property
    def place(self) -> str:
        return str(self.home / "place")

    # ------------------------------------------------------------ processes

    def start(self, *options: str, program: tuple[str, ...] = (), cwd: Path | None = None, **env: str) -> Member:
        """Start `aaiclick` with these arguments, or the same arguments of another program."""
        log = self.home / f"member-{len(self.members)}.log"
        command = [sys.executable, *(program or ("-m", "aaiclick")), *options]
        with open(log, "wb") as said:
            process = warm.Popen(
                command,
                cwd=cwd or self.home,
                env=self.env | env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        member = Member(process, log)
        self.members.append(member)
        return member

    def start_worker(self, *options: str, concurrency: int = 2, **settings: Any) -> Member:
        """Start a worker that finds the errands."""
        standard = ("worker", "start", "-v", "--app-dir", str(APP), "--concurrency", str(concurrency))
        return self.start(*standard, *options, **settings)

    async def workers(self, count: int, *options: str, **settings: Any) -> list[Member]:
        """So many workers that have their sessions."""
        found = [self.start_worker(*options, **settings) for _ in range(count)]
        for member in found:
            await self.session_of(member)
        return found

    async def session_of(self, member: Member) -> int:
        """Its worker id, as soon as it has a session."""
        await eventually(lambda: self._has_session(member))
        return (await self.sessions(member))[-1].id

    async def _has_session(self, member: Member) -> bool:
        assert member.alive, member.said()
        return any(row.status == "active" for row in await self.sessions(member))

    async def sessions(self, member: Member) -> list[Row[Any]]:
        """Its sessions, oldest first."""
        workers = tables.workers
        return list(await self.rows(select(workers).where(workers.c.pid == member.pid).order_by(workers.c.id)))

    def end(self) -> None:
        """Whatever is left of the fleet goes, with its bodies."""
        for member in self.members:
            family = member.family() if member.alive else []
            with suppress(ProcessLookupError):
                member.signal(signal.SIGCONT)
            member.kill()
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        for note in self.notes():
            if is_running(note.pid):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(note.pid, signal.SIGKILL)

    # ------------------------------------------------------------ work

    def errand(self, body: str, name: str | None = None, **options: Any) -> Task:
        """A task that meets the test at the fleet's place."""
        name = name or body
        kwargs = {"place": self.place, "name": name, **options.pop("kwargs", {})}
        return Task(f"errands.{body}", kwargs, name=name, **options)

    def quick(self, count: int) -> list[Task]:
        return [Task("errands.quick", {"value": number}, name=f"quick{number}") for number in range(count)]

    def let(self, *names: str) -> None:
        """Bodies of these names may end; without a name, all."""
        for gate in [f"go-{name}" for name in names] or ["go"]:
            (Path(self.place) / gate).touch()

    def notes(self, what: str | None = None) -> list[Note]:
        """What bodies wrote."""
        file = Path(self.place) / "notes"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [Note(name, word, int(pid)) for name, word, pid in (line.split() for line in lines)]
        return [note for note in found if what in (None, note.what)]

    async def noted(self, what: str, count: int, *names: str) -> list[Note]:
        """What so many bodies wrote, as soon as they have."""

        def found() -> list[Note]:
            return [note for note in self.notes(what) if not names or note.name in names]

        await eventually(lambda: len(found()) >= count, self.explain)
        return found()

    async def end_of(self, job: Job) -> Job:
        """The job when it has ended, and with it all others, so that nothing moves; all invariants hold then."""
        going_on = select(tables.jobs.c.id).where(tables.jobs.c.status.not_in(sorted(ENDED_JOB))).limit(1)

        async def all_ended() -> bool:
            return await self.scalar(going_on) is None

        await eventually(all_ended, self.explain)
        found = await self.violations(at_rest=True)
        assert not found, found
        return await self.job(job)

    async def tasks(self, job: Job) -> dict[str, Row[Any]]:
        """The rows of its tasks, by name."""
        found = await self.rows(select(tables.tasks).where(tables.tasks.c.job_id == job.id))
        return {row.name: row for row in found}

    async def results(self, job: Job) -> dict[str, Any]:
        """What its tasks returned, by name."""
        return {name: json.loads(row.result)["value"] for name, row in (await self.tasks(job)).items() if row.result}

    async def outcomes(self, task: Task) -> list[str]:
        """How the runs of a task ended, in their order."""
        runs = tables.runs
        found = await self.rows(select(runs.c.outcome).where(runs.c.task_id == task.id).order_by(runs.c.epoch))
        return [row.outcome for row in found]

    def explain(self) -> str:
        """What the members said, for whoever waited in vain."""
        return "\n".join(f"--- {member.pid} alive={member.alive}\n{member.said()[-3000:]}" for member in self.members)


def is_running(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


async def all_gone(processes: Iterable[int | psutil.Process]) -> None:
    """Wait until none of these runs."""
    pids = [each if isinstance(each, int) else each.pid for each in processes]
    await eventually(lambda: not any(is_running(pid) for pid in pids))


async def eventually(
    is_so: Callable[[], bool | Awaitable[bool]], explain: Callable[[], str] = str, *, seconds: float = WAIT_S_MAX
) -> None:
    """Look again and again until it is so; a generous bound, and no more."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        answer = is_so()
        if await answer if isawaitable(answer) else answer:
            return
        if asyncio.get_running_loop().time() > until:
            pytest.fail(f"waited in vain for {seconds:g} s\n{explain()}")
        await asyncio.sleep(0.03)


def surroundings(url: str, home: Path, session_s: float) -> dict[str, str]:
    """The environment of a fleet: nothing of the developer's settings, all files under one directory."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AAICLICK_", "WORKER_"))}
    return env | {
        "AAICLICK_SQL_URL": url,
        "AAICLICK_LOCAL_ROOT": str(home / "root"),
        "AAICLICK_LOG_DIR": str(home / "logs"),
        "AAICLICK_SESSION_SECONDS": str(session_s),
        "AAICLICK_CANCEL_GRACE_SECONDS": "0.6",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *map(os.path.abspath, env.get("PYTHONPATH", "").split(os.pathsep))]),
    }


@asynccontextmanager
async def opened_fleet(url: str, home: Path, *, session_s: float = 10.0) -> AsyncIterator[Fleet]:
    """A fleet without workers."""
    (home / "place").mkdir(parents=True)
    database = await Database.open(url)
    bus = open_bus(url)
    coordinator = DirectCoordinator(database, bus=bus)
    found = Fleet(database, coordinator, 0, home, surroundings(url, home, session_s))
    try:
        await provide_ids(database)
        yield found
    finally:
        found.end()
        await bus.close()
        await database.close()


@pytest.fixture
async def fleet(migrated_sql_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A fleet on a migrated database of the test's own."""
    async with opened_fleet(migrated_sql_url, tmp_path / "fleet") as found:
        yield found
