"""The order of a fleet's beginning and end, with small programs in the place of its parts."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from aaiclick.cli.local import fleet as module
from aaiclick.cli.local.fleet import Fleet, Plan
from aaiclick.cli.local.supervised_process import SupervisedProcess
from tests.cli.local.test_supervised_process import STUBBORN, TWICE, WAITS, Told

ENDS = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("up", flush=True)
time.sleep(600)
"""
CANNOT = "import sys; print('aaiclick: no', file=sys.stderr); sys.exit(6)"


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture(autouse=True)
def hang_ups() -> Iterator[None]:
    """As a terminal has it: no test of ours was begun with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def fleet_of(
    told: Told,
    *,
    engine: str = "",
    control: str = ENDS,
    server: str = "",
    workers: tuple[str, ...] = (ENDS,),
    watched: str | None = None,
) -> Fleet:
    """A fleet with these scripts as its parts."""
    fleet = Fleet(Plan(Path("/nowhere/data") if engine else None, 1, (), False, 30.0, watched=watched), told)

    def part(name: str, script: str) -> SupervisedProcess:
        return SupervisedProcess(name, [sys.executable, "-c", script], fleet._tell)

    fleet.engine = [part("engine", engine)] if engine else []
    fleet.control = [part("control", control)]
    fleet.server = [part("server", server)] if server else []
    fleet.workers = [part(f"worker {number}", script) for number, script in enumerate(workers, 1)]
    return fleet


def names(told: Told, event: str) -> list[str]:
    return [facts["part"] for facts in told.named(event)]


async def run(fleet: Fleet) -> int:
    async with asyncio.timeout(60):
        return await fleet.run()


async def test_its_parts_and_what_they_are_started_with(told: Told) -> None:
    plan = Plan(Path("/nowhere/data"), 2, ("--concurrency", "3"), True, 30.0, door=7, server_options=("--app-dir", "x"))
    fleet = Fleet(plan, told)
    parts = [*fleet.engine, *fleet.control, *fleet.server, *fleet.workers]
    assert [part.name for part in parts] == ["engine", "control", "server", "worker 1", "worker 2"]
    engine, control, server, *workers = [list(part._command)[6:] for part in parts]
    assert engine == ["data", "serve", "--wait"]
    assert control == ["background", "start", "-v"]
    assert server == ["server", "start", "--fd", "7", "--app-dir", "x", "-v"]
    assert fleet.server[0]._descriptors == (7,)
    for number, worker in enumerate(workers, 1):
        assert worker == ["worker", "start", "--no-control", "--concurrency", "3", "-v", "--name", f"local-{number}"]
    bare = Fleet(Plan(None, 1, (), False, 30.0), told)
    assert bare.engine == bare.server == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_the_engine_begins_first_and_ends_last(
    told: Told, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    fleet = fleet_of(told, engine=ENDS, server=ENDS, workers=(ENDS, ENDS))
    answers = iter([None, None, object()])
    monkeypatch.setattr(module, "find_gateway", lambda *_: next(answers))
    running = asyncio.create_task(run(fleet))
    await told.until("said", 5)
    assert names(told, "started") == ["engine", "control", "server", "worker 1", "worker 2"]
    assert list(answers) == []
    os.kill(os.getpid(), number)
    assert await running == 0
    assert sorted(names(told, "ended")[2:4]) == ["control", "server"]
    assert names(told, "ended")[4:] == ["engine"]
    assert {facts["code"] for facts in told.named("ended")} == {0}
    assert [name for name, _ in told.events if name not in ("started", "said", "ended")] == [
        *("up", "stopping", "stopped")
    ]


async def test_a_second_signal_hurries_and_a_third_kills(told: Told) -> None:
    fleet = fleet_of(told, workers=(TWICE, STUBBORN))
    running = asyncio.create_task(run(fleet))
    await told.until("said", 3)
    os.kill(os.getpid(), signal.SIGINT)
    await told.until("said", part="worker 1", text="asked")
    os.kill(os.getpid(), signal.SIGINT)
    await told.until("ended", part="worker 1", code=0)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert (len(told.named("hurrying")), len(told.named("stopped"))) == (1, 1)
    assert -signal.SIGKILL in {facts["code"] for facts in told.named("ended") if facts["part"] == "worker 2"}


async def test_an_engine_that_cannot_begin_ends_the_fleet_with_its_code(told: Told) -> None:
    assert await run(fleet_of(told, engine=CANNOT)) == 6
    assert names(told, "started") == ["engine"]


async def test_a_worker_that_cannot_begin_ends_the_fleet_with_its_code(told: Told) -> None:
    assert await run(fleet_of(told, control=WAITS, workers=(CANNOT, ENDS))) == 6
    assert told.named("said")[0]["text"] in ("no", "up")
    assert sorted(names(told, "ended")) == ["control", "worker 1", "worker 2"]


async def test_stopped_while_the_engine_begins_nothing_else_is_started(told: Told) -> None:
    running = asyncio.create_task(run(fleet_of(told, engine=ENDS)))
    await told.until("said")
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert names(told, "started") == names(told, "ended") == ["engine"]


async def test_when_nobody_reads_any_more_it_stops(told: Told) -> None:
    class Deaf(Told):
        def __call__(self, event: str, /, **facts: object) -> None:
            super().__call__(event, **facts)
            if event == "up":
                raise BrokenPipeError

    deaf = Deaf()
    assert await run(fleet_of(deaf)) == 141
    assert deaf.events[-1][0] == "up"


async def test_with_nohup_a_hang_up_is_not_heard(told: Told) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    running = asyncio.create_task(run(fleet_of(told)))
    await told.until("said", 2)
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert told.named("hurrying") == []


async def test_a_server_that_cannot_begin_ends_the_fleet_with_its_code(told: Told) -> None:
    assert await run(fleet_of(told, server=CANNOT)) == 6


async def test_when_modules_change_the_workers_alone_are_started_anew(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: asyncio.Queue[list[str]] = asyncio.Queue()

    async def changes(place: str) -> AsyncIterator[list[str]]:
        assert place == str(tmp_path)
        while True:
            yield await changed.get()

    monkeypatch.setattr(module, "changes_in", changes)
    fleet = fleet_of(told, server=ENDS, workers=(ENDS, ENDS), watched=str(tmp_path))
    running = asyncio.create_task(run(fleet))
    await told.until("said", 4)
    changed.put_nowait(["a.py", "b.py", "c.py", "d.py"])
    await told.until("said", 6)
    assert told.named("reloading") == [{"files": ["a.py", "b.py", "c.py"], "count": 4}]
    assert sorted(names(told, "renewed")) == ["worker 1", "worker 2"]
    assert names(told, "started").count("server") == names(told, "started").count("control") == 1
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0


async def test_a_watch_that_breaks_ends_the_fleet_and_is_told(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def changes(place: str) -> AsyncIterator[list[str]]:
        raise RuntimeError("no more looking")
        yield []

    monkeypatch.setattr(module, "changes_in", changes)
    with pytest.raises(RuntimeError, match="no more looking"):
        await run(fleet_of(told, watched=str(tmp_path)))
