"""How workers end: in order, at once, and with a clear word where they cannot begin."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from aaiclick.orchestration.models import Job
from aaiclick.orchestration.store import tables
from tests.support.fleet import APP, LONG, Fleet, Member, all_gone, eventually, fleet

__all__ = ["fleet"]

CALM = {"AAICLICK_SESSION_SECONDS": "20"}
"""Nobody is taken for dead here."""

WHERE = ["postgres", "mariadb", "sqlite"] if LONG else ["postgres", "mariadb"]
BATCH = 200 if LONG else 10


async def _restart_all(fleet: Fleet, members: list[Member]) -> None:
    """One after another, a new one first."""
    for member in list(members):
        (new,) = await fleet.workers(1)
        members.append(new)
        member.signal(signal.SIGTERM)
        assert await member.ended() == 0, member.said()
        members.remove(member)


@pytest.mark.parametrize("dialect", WHERE, indirect=True)
async def test_a_rolling_restart_loses_nothing(fleet: Fleet) -> None:
    fleet.env |= CALM | {"AAICLICK_SHUTDOWN_GRACE_SECONDS": "0.5"}
    members = await fleet.workers(2)
    task = fleet.errand("waits", "long")
    long = await fleet.submit(task)
    await fleet.noted("began", 1)
    restarting = asyncio.create_task(_restart_all(fleet, members))
    while not restarting.done():
        job = await fleet.submit(*fleet.quick(BATCH))
        await eventually(partial(_is_over, fleet, job, restarting))
    await restarting
    began = len(fleet.notes("began"))
    assert began >= 2, "what outlasts the grace is given back and begins elsewhere"
    fleet.let()
    assert (await fleet.end_of(long)).status == "completed"
    assert await fleet.rows(select(tables.jobs.c.id).where(tables.jobs.c.status != "completed")) == []
    counts = tables.tasks.c
    touched = select(counts.id).where((counts.lost_count + counts.crash_count + counts.attempt) > 0)
    assert await fleet.rows(touched) == []
    assert await fleet.outcomes(task) == ["released"] * (began - 1) + ["completed"]


async def _is_over(fleet: Fleet, job: Job, restarting: asyncio.Task[None]) -> bool:
    return restarting.done() or (await fleet.job(job)).status == "completed"


@pytest.mark.parametrize("dialect", WHERE, indirect=True)
async def test_a_worker_finishes_first_or_ends_at_once(fleet: Fleet) -> None:
    fleet.env["AAICLICK_SESSION_SECONDS"] = "30"
    patient, hasty = await fleet.workers(2)
    job = await fleet.submit(*(fleet.errand("waits", f"wait{number}") for number in range(4)))
    began = await fleet.noted("began", 4)
    patient.signal(signal.SIGTERM)
    await _insist(hasty, signal.SIGINT)
    assert await hasty.ended() == 0, hasty.said()
    await all_gone(note.pid for note in began if note.pid not in {p.pid for p in patient.family()})
    assert patient.alive
    assert [row.status for row in await fleet.sessions(hasty)] == ["stopped"]
    fleet.let()
    assert await patient.ended() == 0, patient.said()
    (last,) = await fleet.workers(1)
    assert (await fleet.end_of(job)).status == "completed"
    rows = (await fleet.tasks(job)).values()
    assert {(row.lost_count, row.crash_count, row.attempt) for row in rows} == {(0, 0, 0)}
    assert sorted(row.epoch for row in rows) == [1, 1, 3, 3]  # claimed; claimed, released, claimed

    told = fleet.start("worker", "stop", str(await fleet.session_of(last)))
    assert await told.ended() == 0, told.said()
    assert await last.ended() == 0, last.said()
    assert [row.status for row in await fleet.sessions(last)] == ["stopped"]


async def _insist(member: Member, number: signal.Signals) -> None:
    """Send the signal twice, or once more if those two arrived as one."""
    member.signal(number)
    await eventually(lambda: not _is_on_its_way(member.pid, number))
    for _ in range(2):
        member.signal(number)
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                await member.ended()
                return


def _is_on_its_way(pid: int, number: signal.Signals) -> bool:
    """Whether the process has not taken it yet, as far as the system says so."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    waiting = sum(int(line.split()[1], 16) for line in lines if line.startswith("ShdPnd:"))
    return bool(waiting & 1 << (number - 1))


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_signals_end_idle_processes_in_order(fleet: Fleet) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    background = fleet.start("background", "start", "-v")
    await eventually(lambda: "leads" in background.said())  # from then on it takes signals in order
    members = [background, fleet.start_worker("--executor", "inline"), *await fleet.workers(1)]
    await fleet.session_of(members[1])
    for member, number in zip(members, numbers, strict=True):
        member.signal(number)
    for member in members:
        assert await member.ended() == 0, member.said()
        assert "Traceback" not in member.said()


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_a_worker_without_stdout_works(fleet: Fleet) -> None:
    shell = 'exec "$0" -m aaiclick "$@" >&- 2>&- <&-'
    fleet.start_worker("--max-tasks", "3", program=("-c", _SHELL, shell))
    job = await fleet.submit(*fleet.quick(3))
    assert (await fleet.end_of(job)).status == "completed"
    (worker,) = fleet.members
    assert await worker.ended() == 0


_SHELL = "import os, sys; os.execv('/bin/sh', ['sh', '-c', sys.argv[1], sys.executable, *sys.argv[2:]])"


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_a_deleted_directory_is_refused_clearly_unless_another_is_named(fleet: Fleet, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    shell = 'rmdir "$PWD"; exec "$0" -m aaiclick "$@"'
    refused = fleet.start("worker", "start", program=("-c", _SHELL, shell), cwd=gone)
    assert await refused.ended() == 2, refused.said()
    assert "the current directory does not exist" in refused.said()
    assert len(refused.said().splitlines()) == 1
    gone.mkdir()
    options = ("worker", "start", "--app-dir", str(APP), "--max-tasks", "2")
    works = fleet.start(*options, program=("-c", _SHELL, shell), cwd=gone)
    job = await fleet.submit(*fleet.quick(2))
    assert (await fleet.end_of(job)).status == "completed"
    assert await works.ended() == 0, works.said()
