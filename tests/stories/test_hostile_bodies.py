"""Hundreds of bodies that do their worst, all mixed; afterwards worker and nursery are what they were before."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from aaiclick.config import reset_settings
from aaiclick.orchestration.execution.executors.process import ProcessExecutor
from aaiclick.orchestration.models import Claim, Failure, Report
from tests.support import bodies, hostile
from tests.support.bodies import claim_of, result_in, until

LONG = "TEST_LONG" in os.environ
BODIES = 2_000 if LONG else 100
HANDS = 8
GROWTH_MB = 24

Kind = Callable[[str], Claim]

KINDS: dict[str, Kind] = {
    "works": lambda path: claim_of(bodies.echo, value=1),
    "talks": lambda path: claim_of(bodies.says, text="x", times=3),
    "exit": lambda path: claim_of(hostile.exits, code=3),
    "exit 0": lambda path: claim_of(hostile.exits, code=0),
    "segfault": lambda path: claim_of(hostile.reads_nowhere),
    "abort": lambda path: claim_of(hostile.signals_itself, number=int(signal.SIGABRT)),
    "kill": lambda path: claim_of(hostile.signals_itself, number=int(signal.SIGKILL)),
    "kills its group": lambda path: claim_of(hostile.kills_its_group),
    "stops itself": lambda path: claim_of(hostile.signals_itself, timeout_s=0.3, number=int(signal.SIGSTOP)),
    "memory": lambda path: claim_of(hostile.takes_all_memory),
    "interrupt": lambda path: claim_of(bodies.interrupts_async),
    "sys.exit": lambda path: claim_of(hostile.leaves_by_the_door),
    "fork": lambda path: claim_of(hostile.forks_and_returns),
    "grandchildren": lambda path: claim_of(hostile.leaves_grandchildren, path=path),
    "writer": lambda path: claim_of(hostile.leaves_a_writer),
    "descriptors": lambda path: claim_of(hostile.leaks_descriptors, count=200),
    "closed stdio": lambda path: claim_of(hostile.closes_stdio, kind="descriptors"),
    "closed streams": lambda path: claim_of(hostile.closes_stdio, kind="streams"),
    "closed everything": lambda path: claim_of(hostile.closes_everything),
    "spins": lambda path: claim_of(hostile.spins, timeout_s=0.3, path=path),
    "hangs": lambda path: claim_of(bodies.sleeps, timeout_s=0.3, seconds=3600.0),
    "waits": lambda path: claim_of(bodies.waits, timeout_s=0.3, path=path),
    "flood": lambda path: claim_of(hostile.output, megabytes=3),
    "huge": lambda path: claim_of(bodies.returns, kind="over 100 MB"),
    "binary": lambda path: claim_of(hostile.binary),
    "cancelled": lambda path: claim_of(hostile.spins, path=path),
    "surroundings": lambda path: claim_of(hostile.changes_surroundings),
}


class Crowd:
    """Hands that take one body after another."""

    def __init__(self, executor: ProcessExecutor, tmp_path: Path, dice: random.Random) -> None:
        self.executor, self.tmp_path = executor, tmp_path
        kinds = sorted(KINDS)
        self.queue = [kinds[number % len(kinds)] for number in range(BODIES)]
        dice.shuffle(self.queue)
        self.outcomes: Counter[tuple[str, str]] = Counter()

    async def work(self) -> None:
        while self.queue:
            kind = self.queue.pop()
            claim = KINDS[kind](str(self.tmp_path / f"{len(self.queue)}"))
            run = asyncio.create_task(self.executor.run(claim, lambda path: None))
            if kind == "cancelled":
                await asyncio.wait([run], timeout=0.2)
                run.cancel()
                await asyncio.wait([run])
                self.outcomes[kind, "cancelled" if run.cancelled() else "not cancelled"] += 1
            else:
                self.outcomes[kind, _outcome(await run)] += 1


def _outcome(report: Report) -> str:
    if isinstance(report, Failure):
        return "crashed" if report.crashed else report.error.partition(":")[0]
    return "done"


EXPECTED = {
    "works": "done",
    "talks": "done",
    "exit": "crashed",
    "exit 0": "crashed",
    "segfault": "crashed",
    "abort": "crashed",
    "kill": "crashed",
    "kills its group": "crashed",
    "stops itself": "TaskTimeout",
    "memory": "MemoryError",
    "interrupt": "KeyboardInterrupt",
    "sys.exit": "SystemExit",
    "fork": "done",
    "grandchildren": "done",
    "writer": "done",
    "descriptors": "done",
    "closed stdio": "done",
    "closed streams": "done",
    "closed everything": "crashed",
    "spins": "TaskTimeout",
    "hangs": "TaskTimeout",
    "waits": "TaskTimeout",
    "flood": "done",
    "huge": "ValueTooLarge",
    "binary": "done",
    "cancelled": "cancelled",
    "surroundings": "done",
}


def memory_mb(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


async def warm_up(executor: ProcessExecutor, tmp_path: Path) -> None:
    """Whatever is allotted once and kept is there afterwards."""
    for kind in ("works", "talks", "exit", "flood", "huge", "hangs"):
        await executor.run(KINDS[kind](str(tmp_path / "warm")), lambda path: None)
    gc.collect()


async def test_hostile_bodies_hurt_only_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AAICLICK_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("AAICLICK_CANCEL_GRACE_SECONDS", "0.3")
    monkeypatch.setenv("AAICLICK_LOG_BYTES_MAX", "100000")
    reset_settings()
    executor = ProcessExecutor(HANDS)
    await executor.start()
    assert executor._nursery is not None
    worker, nursery = psutil.Process(), psutil.Process(executor._nursery.pid)
    try:
        await warm_up(executor, tmp_path)
        await until(lambda: is_settled(executor, nursery))
        fds, nursery_fds = worker.num_fds() - len(living(executor)), nursery.num_fds()
        memory, nursery_memory = memory_mb(worker), memory_mb(nursery)

        crowd = Crowd(executor, tmp_path, random.Random(7))
        await asyncio.gather(*(crowd.work() for _ in range(HANDS)))

        wrong = {key: count for key, count in crowd.outcomes.items() if EXPECTED[key[0]] != key[1]}
        assert not wrong
        assert crowd.outcomes.total() == BODIES
        assert executor._nursery.pid == nursery.pid
        await until(lambda: is_settled(executor, nursery))
        assert worker.num_fds() - len(living(executor)) == fds
        assert nursery.num_fds() == nursery_fds
        gc.collect()
        assert memory_mb(worker) - memory < GROWTH_MB
        assert memory_mb(nursery) - nursery_memory < GROWTH_MB
        assert result_in(await executor.run(claim_of(bodies.echo, value=1), lambda path: None)) == 1
    finally:
        await executor.close()


def living(executor: ProcessExecutor) -> list[int]:
    return [child.pid for child in executor._idle if child.alive]


def is_settled(executor: ProcessExecutor, nursery: psutil.Process) -> bool:
    """Whether those that were killed are gone, and their deaths have been told."""
    assert executor._nursery is not None
    family = {process.pid for process in nursery.children(recursive=True)}
    return family == set(executor._nursery.children) == set(living(executor))
